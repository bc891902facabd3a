//! Connections: taken, bounded, and brought to their end when the server stops.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Sleep, sleep};

use crate::answers::Answers;
use crate::routes::router;
use crate::server::{Options, Server};

/// How many connections there may be at once; others wait to be taken.
const CONNECTIONS: usize = 512;
/// How long others may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// For the head of a request, also on a connection that is kept open.
    pub head: Duration,
    /// For taking what is sent to them.
    pub unread: Duration,
    /// For what is under way when the server stops.
    pub end: Duration,
}

const PATIENCE: Patience =
    Patience { head: Duration::from_secs(20), unread: Duration::from_secs(30), end: Duration::from_secs(10) };
const LONGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 100;

/// Stops a server.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<bool>);

/// What a server that can be stopped is given.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

pub fn stopper() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper(sender), Stop(receiver))
}

impl Stopper {
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// Serves until it is stopped; blocks.
pub fn serve(
    listener: std::net::TcpListener,
    answers: Arc<dyn Answers>,
    options: Options,
    stop: Stop,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .thread_name("driftline-web")
        .enable_all()
        .build()?;
    let server = Server::new(answers, options, stop.0.clone());
    let ended = runtime.block_on(run(listener, server, stop.0, PATIENCE));
    // An answer that nobody waits for any more need not be finished.
    runtime.shutdown_background();
    ended
}

pub(crate) async fn run(
    listener: std::net::TcpListener,
    server: Arc<Server>,
    mut stop: watch::Receiver<bool>,
    patience: Patience,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let keeper = tokio::spawn(server.live.clone().keep(stop.clone()));
    let router = router(server.clone());
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let stream = match taken {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, or somebody gave up: neither ends the server.
                (server.options.tell)(&format!("a connection could not be taken: {error}"));
                sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience.head)
            .max_header_size(LONGEST_HEAD)
            .max_headers(MOST_HEADERS)
            .serve_connection(
                TokioIo::new(Impatient::new(stream, patience.unread)),
                TowerToHyperService::new(router.clone()),
            );
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // Whoever goes away in the middle is no news.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(patience.end, graceful.shutdown()).await;
    keeper.abort();
    Ok(())
}

/// A connection that ends when what is sent is not taken for too long: a slow reader must not keep a place for ever.
struct Impatient {
    stream: TcpStream,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    fn bounded<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match poll(Pin::new(&mut self.stream), context) {
            Poll::Ready(done) => {
                self.waiting = None;
                Poll::Ready(done)
            }
            Poll::Pending => {
                let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(self.patience)));
                match waiting.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}

impl AsyncRead for Impatient {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().bounded(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().bounded(context, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().bounded(context, AsyncWrite::poll_shutdown)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().bounded(context, |stream, context| stream.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

//! A real API server and its etcd, on ports of their own. There are no controllers: nothing happens by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::Value as Json;
use tempfile::TempDir;

use super::process::{Process, eventually, free_port};
use crate::support::{PROGRAM, Ran, ran, skip, variable};

/// May do everything.
const ADMIN: &str = "admin-token";
/// May do what the roles say that tests bind to the user `operator`.
pub(crate) const LIMITED: &str = "limited-token";
pub(crate) const LIMITED_USER: &str = "operator";

/// A cluster without nodes.
pub(crate) struct Cluster {
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
    etcd_port: u16,
    proxy_port: u16,
    kinds: Once,
    api: Option<Process>,
    proxy: Option<Process>,
    _etcd: Process,
}

/// The folder with the programs, or a word that they are not there.
pub(crate) fn programs() -> Option<PathBuf> {
    let found = variable("KUBEBUILDER_ASSETS").map(PathBuf::from);
    if found.is_none() {
        skip("KUBEBUILDER_ASSETS is not set; scripts/kube-env makes what it names");
    }
    found
}

/// One cluster for all tests that do not stop it: each has namespaces of its own in it.
pub(crate) fn shared() -> Option<&'static Cluster> {
    static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
    SHARED.get_or_init(|| programs().map(|programs| Cluster::start(&programs))).as_ref()
}

impl Cluster {
    /// Starts etcd and the API server, and waits until it serves.
    pub(crate) fn start(programs: &Path) -> Self {
        // Not removed by us: what runs there is, and removes it when it has ended.
        let folder = TempDir::with_prefix("driftline-cluster-").unwrap().keep();
        let (port, etcd_port, proxy_port) = (free_port(), free_port(), free_port());
        write_files(&folder, port);
        let etcd = Process::start(&etcd(programs, &folder, etcd_port), &folder.join("etcd.log"), Some(&folder));
        let mut cluster = Self {
            folder: folder.clone(),
            programs: programs.to_owned(),
            port,
            etcd_port,
            proxy_port,
            kinds: Once::new(),
            api: None,
            proxy: None,
            _etcd: etcd,
        };
        cluster.start_api();
        // It reads the certificate, which the API server makes when it starts.
        let mut proxy = kubectl(programs, &folder);
        proxy.args(["proxy", "--address=127.0.0.1", &format!("--port={proxy_port}")]);
        cluster.proxy = Some(Process::start(&proxy, &folder.join("proxy.log"), None));
        eventually("the proxy of kubectl", || cluster.fetch("/readyz"));
        cluster
    }

    pub(crate) fn start_api(&mut self) {
        let command = api_server(&self.programs, &self.folder, self.port, self.etcd_port);
        self.api = Some(Process::start(&command, &self.folder.join("apiserver.log"), None));
        let cluster: &Self = self;
        eventually("the API server to be ready", || match cluster.kubectl(["get", "--raw", "/readyz"]) {
            ready if ready.code == 0 => Ok(()),
            not => Err(format!("{}\n{}", not.err, cluster.api.as_ref().map(Process::last_words).unwrap_or_default())),
        });
    }

    /// As if its machine had lost power.
    pub(crate) fn kill_api(&mut self) {
        self.api = None;
    }

    /// The kubeconfig of somebody who may do everything.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("admin.kubeconfig")
    }

    /// The kubeconfig of a user who may do what a test allows.
    pub(crate) fn limited_kubeconfig(&self) -> PathBuf {
        self.folder.join("limited.kubeconfig")
    }

    /// What a user types.
    #[track_caller]
    pub(crate) fn kubectl<const N: usize>(&self, arguments: [&str; N]) -> Ran {
        self.kubectl_all(&arguments)
    }

    #[track_caller]
    pub(crate) fn kubectl_all(&self, arguments: &[&str]) -> Ran {
        ran(&kubectl(&self.programs, &self.folder).args(arguments).output().unwrap())
    }

    /// `kubectl … -f -` with this on its standard input.
    #[track_caller]
    pub(crate) fn kubectl_with(&self, input: &str, arguments: &[&str]) -> Ran {
        use std::io::Write;
        let mut command = kubectl(&self.programs, &self.folder);
        command.args(arguments).args(["-f", "-"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let _ = pipe.write_all(input.as_bytes());
        drop(pipe);
        ran(&child.wait_with_output().unwrap())
    }

    #[track_caller]
    pub(crate) fn apply(&self, objects: &str) {
        self.kubectl_with(objects, &["apply", "--server-side"]).succeeded();
    }

    /// One GET. kubectl takes half a second to start, so what is asked again and again goes through its proxy.
    pub(crate) fn fetch(&self, path: &str) -> Result<String, String> {
        super::http::get(self.proxy_port, path)
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Json {
        let text = self.fetch(path).unwrap_or_else(|error| panic!("GET {path}: {error}"));
        serde_json::from_str(&text).unwrap()
    }

    /// Makes the operator's kinds known, as the operator itself prints them.
    pub(crate) fn define_kinds(&self) {
        self.kinds.call_once(|| {
            let printed = ran(&Command::new(PROGRAM).args(["operator", "crds"]).output().unwrap()).succeeded();
            self.apply(&printed.out);
            let wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=120s"];
            self.kubectl(wait).succeeded();
        });
    }

    /// A namespace that nobody else uses.
    pub(crate) fn namespace(&self, about: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("{about}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.kubectl(["create", "namespace", &name]).succeeded();
        name
    }
}

/// What is written before a point on the curve P-256 to make a public key of it (RFC 5480).
const POINT_ON_P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

fn pem(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..(at + 64).min(text.len())]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn write_files(folder: &Path, port: u16) {
    let write = |name: &str, content: String| fs::write(folder.join(name), content).unwrap();
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref(), &random).unwrap();
    let public = [&POINT_ON_P256, pair.public_key().as_ref()].concat();
    write("accounts.key", pem("PRIVATE KEY", key.as_ref()));
    write("accounts.pub", pem("PUBLIC KEY", &public));
    write("tokens.csv", format!("{ADMIN},admin,1,system:masters\n{LIMITED},{LIMITED_USER},2\n"));
    for (name, token) in [("admin", ADMIN), ("limited", LIMITED)] {
        write(
            &format!("{name}.kubeconfig"),
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
                 contexts: [{{name: test, context: {{cluster: test, user: {name}}}}}]\n\
                 clusters: [{{name: test, cluster: {{server: 'https://127.0.0.1:{port}', \
                 certificate-authority: certificates/apiserver.crt}}}}]\n\
                 users: [{{name: {name}, user: {{token: {token}}}}}]\n"
            ),
        );
    }
}

fn program(programs: &Path, folder: &Path, name: &str) -> Command {
    let mut command = Command::new(programs.join(name));
    command.current_dir(folder).env("HOME", folder).env("PATH", variable("PATH").unwrap_or_default());
    command
}

fn kubectl(programs: &Path, folder: &Path) -> Command {
    let mut command = Command::new(programs.join("kubectl"));
    command.current_dir(folder).env_clear().stdin(Stdio::null());
    command.env("HOME", folder).env("PATH", variable("PATH").unwrap_or_default());
    command.env("KUBECONFIG", folder.join("admin.kubeconfig"));
    command
}

fn etcd(programs: &Path, folder: &Path, port: u16) -> Command {
    let mut command = program(programs, folder, "etcd");
    let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{}", free_port()));
    command.args(["--data-dir", "etcd", "--log-level", "warn", "--unsafe-no-fsync"]);
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}")]);
    command
}

fn api_server(programs: &Path, folder: &Path, port: u16, etcd: u16) -> Command {
    let mut command = program(programs, folder, "kube-apiserver");
    command.args([
        &format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        &format!("--secure-port={port}"),
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--cert-dir=certificates",
        "--token-auth-file=tokens.csv",
        "--authorization-mode=RBAC",
        "--service-account-key-file=accounts.pub",
        "--service-account-signing-key-file=accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
    ]);
    // Its garbage collector may as well run before the memory of a small machine is used up.
    command.env("GOMEMLIMIT", "400MiB");
    command
}

//! A store in a bucket, against a real server of S3's protocol, behind a proxy that makes it fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(clippy::disallowed_methods, reason = "tests are told by their environment what is installed")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use driftline_core::{
    Coverage, Extent, Header, Observation, Outcome, Properties, Resource, ResourceKey, RuleBook, StreamId, Value,
};
use driftline_store::draft::Permissions;
use driftline_store::gc::Retention;
use driftline_store::{Bucket, Place, Store, StoreError, Tuning};
use fake_aws::{Emulator, Proxy, Settings};
use jiff::{SignedDuration, Timestamp};
use object_store::aws::AmazonS3Builder;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt, PutOptions};
use tokio::runtime::Runtime;

/// A server, a proxy before it, and a bucket in it.
struct Bench {
    _emulator: Emulator,
    proxy: Proxy,
    runtime: Runtime,
}

impl Bench {
    fn new() -> Option<Self> {
        let Some(environment) = std::env::var_os("DRIFTLINE_TEST_AWS").map(PathBuf::from) else {
            assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "on CI nothing is skipped");
            let _ =
                writeln!(std::io::stderr().lock(), "skipped: DRIFTLINE_TEST_AWS is not set; scripts/aws-env makes it");
            return None;
        };
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::moto(&environment).unwrap();
        let proxy = Proxy::start(Settings::before(emulator.url())).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let bench = Self { _emulator: emulator, proxy, runtime };
        let made = std::process::Command::new(environment.join("bin/python"))
            .args([
                "-c",
                "import boto3, sys; boto3.client('s3', endpoint_url=sys.argv[1]).create_bucket(Bucket='fleet')",
            ])
            .arg(bench.proxy.url())
            .envs([("AWS_ACCESS_KEY_ID", "123456789012"), ("AWS_SECRET_ACCESS_KEY", "x"), ("AWS_REGION", "us-east-1")])
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(bench)
    }

    /// The bucket as one machine sees it.
    fn place(&self, prefix: &str, cache: Option<&Path>) -> Place {
        let _inside = self.runtime.enter();
        let objects = AmazonS3Builder::new()
            .with_bucket_name("fleet")
            .with_region("us-east-1")
            .with_endpoint(self.proxy.url())
            .with_access_key_id("123456789012")
            .with_secret_access_key("x")
            .with_client_options(ClientOptions::new().with_allow_http(true).with_timeout(Duration::from_secs(20)))
            .build()
            .unwrap();
        let objects: Arc<dyn ObjectStore> = Arc::new(PrefixStore::new(objects, prefix));
        Place::Bucket(Bucket {
            url: format!("s3://fleet/{prefix}"),
            objects,
            runtime: self.runtime.handle().clone(),
            cache: cache.map(ToOwned::to_owned),
        })
    }

    fn fail(&self, rules: serde_json::Value) {
        self.proxy.set_rules(serde_json::from_value(rules).unwrap());
    }

    /// Every twentieth request fails in one of the ways in which networks and services fail, and listings lag.
    fn fail_now_and_then(&self) {
        let share = |probability: f64, action: serde_json::Value| serde_json::json!({"match": {"service": "s3"}, "when": {"probability": probability}, "do": action});
        self.fail(serde_json::json!([
            share(0.02, serde_json::json!({"refuse": "throttle"})),
            share(0.01, serde_json::json!("unreachable")),
            share(0.02, serde_json::json!("lose_reply")),
            share(0.02, serde_json::json!({"slow": {"ms": 50}})),
            {"match": {"service": "s3", "operation": "ListObjectsV2"}, "do": {"lag": {"ms": 2000}}},
        ]));
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

const KIND: &str = "AWS::SQS::Queue";
const REGION: &str = "aws/123456789012/us-east-1";

/// A pass that saw these queues, each with a number.
fn pass(source: &str, second: i64, queues: impl IntoIterator<Item = (String, i64)>) -> Observation {
    let mut observation = Observation::new(Header {
        stream: source.parse().unwrap(),
        taken_at: at(second),
        observer: None,
        coverage: Coverage::complete(),
        problems: Vec::new(),
        nature: driftline_core::Nature::default(),
    });
    for (name, number) in queues {
        let key = ResourceKey { kind: KIND.into(), place: driftline_core::Place::new(REGION), id: name };
        let value: Value = serde_json::from_value(serde_json::json!({"number": number})).unwrap();
        observation.insert(Resource { key, properties: Properties::new(&value) }).unwrap();
    }
    observation
}

fn numbers(store: &Store, stream: &StreamId, version: u64) -> BTreeMap<String, String> {
    let found = store.resources(stream, version, |_| true).unwrap();
    found.into_iter().map(|(key, value)| (key.id, value.get("number").unwrap().to_json())).collect()
}

/// The number that all queues of a version have: five of them, from one pass.
fn whole(store: &Store, stream: &StreamId, version: u64) -> String {
    let found = numbers(store, stream, version);
    assert_eq!(found.len(), 5, "{stream} v{version} has lost some or gained some: {found:?}");
    let passes: BTreeSet<&String> = found.values().collect();
    assert_eq!(passes.len(), 1, "{stream} v{version} has parts of several passes: {found:?}");
    found.into_values().next().unwrap()
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Looks at the newest versions again and again: each must be whole.
fn read_on(place: &Place, done: &AtomicBool, looked: &AtomicU64) {
    while !done.load(Ordering::Relaxed) {
        let store = match Store::open(place) {
            Ok(store) => store,
            // The network is made to fail; that may be told. Anything else would be a store that is half there.
            Err(StoreError::Io { .. }) => continue,
            Err(StoreError::NoStore { .. }) if looked.load(Ordering::Relaxed) == 0 => continue,
            Err(error) => panic!("a reader found the store broken: {error}"),
        };
        for (stream, versions) in store.catalog().streams() {
            let Some(head) = versions.head() else { continue };
            whole(&store, stream, head.number);
            looked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Packs what is there again and again. Nothing is old enough to be deleted.
fn pack_on(place: &Place, done: &AtomicBool, looked: &AtomicU64, packed: &AtomicU64) {
    let hour = SignedDuration::from_hours(1);
    let retention = Retention { keep_for: hour * 1_000_000, keep_last: 1, grace: hour };
    while !done.load(Ordering::Relaxed) {
        match Store::open(place).and_then(|mut store| store.collect(retention, Timestamp::now(), false)) {
            Ok(collected) => {
                assert_eq!((collected.dropped.len(), collected.files_deleted), (0, 0));
                packed.fetch_add(collected.packed.1 as u64, Ordering::Relaxed);
            }
            Err(StoreError::Io { .. }) => {}
            Err(StoreError::NoStore { .. }) if looked.load(Ordering::Relaxed) == 0 => {}
            Err(error) => panic!("packing failed: {error}"),
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// `DRIFTLINE_WRITERS=20 DRIFTLINE_COMMITS=200` is the whole of it; the ordinary run has less of the same.
#[test]
fn writers_on_many_machines_lose_nothing_and_readers_see_whole_versions() {
    let Some(bench) = Bench::new() else { return };
    let (writers, commits, sources) =
        (setting("DRIFTLINE_WRITERS", 6), setting("DRIFTLINE_COMMITS", 12), 3.max(setting("DRIFTLINE_WRITERS", 6) / 2));
    // Made before anything fails, so that the first commit of all is not a race for making the store as well.
    Store::create(bench.place("many", None)).unwrap();
    bench.fail_now_and_then();
    let done = AtomicBool::new(false);
    let (looked, packed) = (AtomicU64::new(0), AtomicU64::new(0));
    let clock = AtomicU64::new(1);
    let cache = tempfile::tempdir().unwrap();
    let place = bench.place("many", Some(cache.path()));
    std::thread::scope(|scope| {
        let writing: Vec<_> = (0..writers)
            .map(|writer| {
                let (bench, clock) = (&bench, &clock);
                scope.spawn(move || {
                    let cache = tempfile::tempdir().unwrap();
                    let mut store = Store::create(bench.place("many", Some(cache.path()))).unwrap();
                    let source = format!("queues/s{}", writer % sources);
                    for nth in 0..commits {
                        // All queues of a version have the same number: a version of two passes would show.
                        let second = clock.fetch_add(1, Ordering::Relaxed);
                        let number = i64::try_from(writer * 1_000_000 + nth).unwrap();
                        let queues = (0..5).map(|queue| (format!("queue-{queue}"), number));
                        let observation = pass(&source, i64::try_from(second).unwrap(), queues);
                        let permissions = Permissions { older: true, ..Permissions::default() };
                        store.commit(&observation, None, permissions, at(0)).unwrap();
                    }
                })
            })
            .collect();
        let (others, place, done, looked, packed) = (scope, &place, &done, &looked, &packed);
        others.spawn(move || read_on(place, done, looked));
        let bench = &bench;
        others.spawn(move || pack_on(&bench.place("many", None), done, looked, packed));
        let results: Vec<_> = writing.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        for result in results {
            result.unwrap();
        }
    });
    bench.fail(serde_json::json!([]));
    let store = Store::open(&place).unwrap();
    let mut all = BTreeSet::new();
    let mut versions = 0;
    for (stream, known) in store.catalog().streams() {
        for version in known.versions() {
            versions += 1;
            let pass = whole(&store, stream, version.number);
            assert!(all.insert(pass), "{stream} v{} is there twice", version.number);
        }
    }
    assert_eq!(versions, writers * commits, "each commit is one version");
    assert!(looked.load(Ordering::Relaxed) > 0);
    assert!(packed.load(Ordering::Relaxed) > 0, "nothing was packed meanwhile");
    store.verify().unwrap();
    let calls = bench.proxy.calls();
    let injected: u64 =
        calls.iter().filter(|counted| counted.call.outcome.starts_with("injected")).map(|counted| counted.calls).sum();
    assert!(injected > 0, "nothing failed, so nothing was shown");
    let all: u64 = calls.iter().map(|call| call.calls).sum();
    let mut by_operation: BTreeMap<&str, u64> = BTreeMap::new();
    for counted in &calls {
        *by_operation.entry(&counted.call.operation).or_default() += counted.calls;
    }
    let _ = writeln!(std::io::stderr().lock(), "{by_operation:?}");
    let _ = writeln!(
        std::io::stderr().lock(),
        "{versions} versions by {writers} writers; {all} requests, {injected} of them made to fail; {} looks, {} packs",
        looked.load(Ordering::Relaxed),
        packed.load(Ordering::Relaxed)
    );
}

#[test]
fn a_bucket_is_a_store_like_a_folder() {
    let Some(bench) = Bench::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let far = bench.place("same", Some(cache.path()));
    assert!(matches!(Store::open(&far), Err(StoreError::NoStore { .. })));
    let mut stores = [Store::create(&far).unwrap(), Store::create(folder.path()).unwrap()];
    let mut digests = Vec::new();
    for store in &mut stores {
        let stream: StreamId = "queues".parse().unwrap();
        for second in 0..12 {
            let queues = (0..40).map(|queue| (format!("queue-{queue}"), if queue == second { second } else { 0 }));
            store.commit(&pass("queues", second, queues), None, Permissions::default(), at(second)).unwrap();
        }
        store.set_baseline(&"main".parse().unwrap(), &[(stream.clone(), 2)].into(), "me", at(20)).unwrap();
        let drift =
            store.drift(&store.question(&"main".parse().unwrap(), None).unwrap(), &RuleBook::default()).unwrap();
        assert_eq!(drift.findings.len(), 2, "the queue of the pinned pass, and that of the newest");
        let kept = Retention { keep_for: SignedDuration::ZERO, keep_last: 2, grace: SignedDuration::ZERO };
        store.collect(kept, at(1000), false).unwrap();
        store.verify().unwrap();
        let stream = store.catalog().stream(&stream).unwrap();
        digests.push(stream.versions().map(|version| (version.number, version.digest.clone())).collect::<Vec<_>>());
        assert_eq!(stream.versions().map(|version| version.number).collect::<Vec<_>>(), [2, 11, 12]);
    }
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn files_that_never_change_are_asked_for_once() {
    let Some(bench) = Bench::new() else { return };
    let cache = tempfile::tempdir().unwrap();
    let place = bench.place("cached", Some(cache.path()));
    let mut store = Store::create(&place).unwrap();
    for second in 0..3 {
        let queues = (0..5).map(|queue| (format!("queue-{queue}"), second));
        store.commit(&pass("queues", second, queues), None, Permissions::default(), at(second)).unwrap();
    }
    let look = || numbers(&Store::open(&place).unwrap(), &"queues".parse().unwrap(), 3);
    let first = look();
    bench.proxy.forget_calls();
    assert_eq!(look(), first);
    let got = bench.proxy.calls();
    let of = |operation: &str| {
        got.iter().filter(|call| call.call.operation == operation).map(|call| call.calls).sum::<u64>()
    };
    // The log: a request for each record that is there, and for a few that may be.
    assert!(of("GetObject") <= 10, "{got:?}");
    assert!(of("PutObject") == 0, "{got:?}");
}

#[test]
fn a_server_that_overwrites_is_refused() {
    let Some(bench) = Bench::new() else { return };
    // What a look-alike without conditional writes does: it takes the second file, and says that all is well.
    bench.fail(serde_json::json!([{"match": {"service": "s3"}, "do": "unconditional"}]));
    let refused = Store::create(bench.place("lossy", None)).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("If-None-Match"), "{refused}");
}

#[test]
fn a_prefix_with_other_things_is_left_alone() {
    let Some(bench) = Bench::new() else { return };
    let Place::Bucket(bucket) = bench.place("shared", None) else { unreachable!() };
    let path = "readme.txt".into();
    bench.runtime.block_on(bucket.objects.put_opts(&path, "mine".into(), PutOptions::default())).unwrap();
    let refused = Store::create(bench.place("shared", None)).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("readme.txt"), "{refused}");
}

/// A pass covers what an earlier one did, and that file is deleted while the record is on its way.
#[test]
fn coverage_that_is_deleted_before_it_is_named_is_put_back() {
    let Some(bench) = Bench::new() else { return };
    let place = bench.place("covered", None);
    let mut store = Store::create(&place).unwrap();
    let queues = |number: i64| (0..5).map(move |queue| (format!("queue-{queue}"), number));
    let partial = Outcome::Partial { reason: "throttled".into() };
    let mut other = pass("queues", 2, queues(2));
    other.header.coverage.record(Extent { kind: KIND.into(), place: REGION.into() }, partial);
    store.commit(&pass("queues", 1, queues(1)), None, Permissions::default(), at(1)).unwrap();
    store.commit(&other, None, Permissions::default(), at(2)).unwrap();
    let stream: StreamId = "queues".parse().unwrap();
    let names: Vec<String> =
        store.catalog().stream(&stream).unwrap().versions().map(|version| version.coverage.clone()).collect();
    assert_ne!(names[0], names[1], "the two cover different things");

    bench.fail(
        serde_json::json!([{"match": {"service": "s3", "operation": "PutObject"}, "do": {"slow": {"ms": 1500}}}]),
    );
    bench.proxy.forget_calls();
    let Place::Bucket(bucket) = &place else { unreachable!() };
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| store.commit(&pass("queues", 3, queues(3)), None, Permissions::default(), at(3)));
        let looked = || bench.proxy.calls().iter().any(|counted| counted.call.operation == "HeadObject");
        while !looked() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let path = format!("coverage/{}.json.zst", names[0]).into();
        bench.runtime.block_on(bucket.objects.delete(&path)).unwrap();
        writing.join().unwrap().unwrap();
    });
    bench.fail(serde_json::json!([]));
    let store = Store::open(&place).unwrap();
    let newest = store.catalog().stream(&stream).unwrap().head().unwrap();
    assert_eq!((newest.number, &newest.coverage), (3, &names[0]));
    store.coverage(&newest.coverage).unwrap();
    store.verify().unwrap();
}

/// What docs/scale.md reckons with: the requests of a version that changes something, and of one that does not, each
/// by a process of its own on a machine that has committed before.
#[test]
fn a_version_costs_few_requests() {
    let Some(bench) = Bench::new() else { return };
    let cache = tempfile::tempdir().unwrap();
    let place = bench.place("thrifty", Some(cache.path()));
    let queues =
        |changed: i64| (0..200).map(move |queue| (format!("queue-{queue}"), if queue == 0 { changed } else { 0 }));
    let commit = |second: i64, changed: i64| {
        let mut store = Store::create(&place).unwrap().with_tuning(Tuning { index_rows: 1, ..Tuning::default() });
        let observation = pass("queues", second, queues(changed));
        let mut draft = store.draft(observation.header.clone(), Some("a reader".into())).unwrap();
        let lines: Vec<String> =
            observation.resources().map(|(key, value)| format!("{key} {}", value.to_json())).collect();
        let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        let mut known = Vec::new();
        draft.known(&lines, &mut known);
        for (((key, properties), line), known) in observation.resources().zip(&lines).zip(&known) {
            if !known {
                draft.push(key.as_ref(), properties.as_ref(), line).unwrap();
            }
        }
        draft.finish(None, Permissions::default(), at(second)).unwrap();
        known.into_iter().filter(|known| *known).count()
    };
    commit(1, 1);
    let mut told = Vec::new();
    for (second, changed) in [(2, 2), (3, 3), (4, 3)] {
        bench.proxy.forget_calls();
        assert!(commit(second, changed) >= 199, "the index on this machine is exact");
        let mut requests: BTreeMap<String, u64> = BTreeMap::new();
        for counted in bench.proxy.calls() {
            *requests.entry(counted.call.operation.clone()).or_default() += counted.calls;
        }
        let _ = writeln!(std::io::stderr().lock(), "version {second}: {requests:?}");
        told.push(requests);
    }
    for requests in &told[..2] {
        // The change file and the record. The index in the bucket stays: a sixteenth of it has not changed.
        assert_eq!(requests["PutObject"], 2, "{requests:?}");
    }
    assert_eq!(told[2]["PutObject"], 1, "the record: {:?}", told[2]);
    let lists = |requests: &BTreeMap<String, u64>| requests.get("ListObjectsV2").copied().unwrap_or(0);
    assert!(told.iter().all(|requests| lists(requests) <= 3), "{told:?}");
}

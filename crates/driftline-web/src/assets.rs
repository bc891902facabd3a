//! The style, the script and the icon: in the binary, under names that change with their content.

use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

/// A file that is served as it is.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Where it is served; another content is another address, so that it may be kept for ever.
    pub path: String,
    pub kind: &'static str,
    pub bytes: &'static [u8],
}

#[derive(Debug)]
pub(crate) struct Assets {
    pub style: Asset,
    pub script: Asset,
    pub icon: Asset,
}

impl Assets {
    pub(crate) fn find(&self, path: &str) -> Option<&Asset> {
        [&self.style, &self.script, &self.icon].into_iter().find(|asset| asset.path == path)
    }
}

pub(crate) static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets {
    style: asset("style", "css", "text/css; charset=utf-8", include_bytes!("../assets/style.css")),
    script: asset("script", "js", "text/javascript; charset=utf-8", include_bytes!("../assets/script.js")),
    icon: asset("icon", "svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
});

fn asset(name: &str, ending: &str, kind: &'static str, bytes: &'static [u8]) -> Asset {
    Asset { path: format!("/assets/{name}-{:016x}.{ending}", xxh3_64(bytes)), kind, bytes }
}

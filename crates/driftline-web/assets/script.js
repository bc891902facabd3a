// What a page can do beyond itself: bring itself up to date, select rows, slide through time, listen to keys, and keep
// saying how long ago something was. Without it every page is complete; nothing here may be needed.
"use strict";
(() => {
  const one = (what, from = document) => from.querySelector(what);
  const all = (what, from = document) => [...from.querySelectorAll(what)];

  // ---- How long ago, in the words of the server.
  const ago = (at) => {
    const seconds = Math.trunc((Date.now() - at) / 1000);
    const far = Math.abs(seconds);
    if (far < 60) return "just now";
    const [many, unit] = far < 3600 ? [far / 60, "minute"] : far < 172800 ? [far / 3600, "hour"] : [far / 86400, "day"];
    const whole = Math.trunc(many);
    const words = `${whole.toLocaleString("en")} ${unit}${whole === 1 ? "" : "s"}`;
    return seconds < 0 ? `in ${words}` : `${words} ago`;
  };
  const tellTimes = () => {
    for (const node of all("[data-ago]")) {
      const words = ago(Date.parse(node.dataset.ago));
      if (node.textContent !== words) node.textContent = words;
    }
  };

  // ---- Selecting rows.
  const boxes = () => all('tbody input[name="finding"]');
  const countChosen = () => {
    const form = one("form.select");
    if (!form) return;
    const many = boxes().filter((box) => box.checked).length;
    form.classList.toggle("some", many > 0);
    const chosen = one("#chosen");
    if (chosen) chosen.textContent = many ? ` ${many}` : "";
    const every = one("#all");
    if (every) {
      every.checked = many > 0 && many === boxes().length;
      every.indeterminate = many > 0 && many < boxes().length;
    }
  };
  document.addEventListener("change", ({ target }) => {
    if (target.id === "all") for (const box of boxes()) box.checked = target.checked;
    if (target.id === "all" || target.name === "finding") countChosen();
  });

  // ---- Two selects as a slider over what the second offers.
  const makeSlider = () => {
    const slider = one("#slider");
    const to = one("select#to");
    if (!slider || !to || to.options.length < 2) return;
    slider.max = to.options.length - 1;
    const tell = () => (slider.nextElementSibling.textContent = slider.ariaValueText = to.options[slider.value].text);
    slider.value = to.selectedIndex;
    tell();
    slider.parentElement.hidden = false;
    slider.addEventListener("input", () => {
      to.selectedIndex = slider.value;
      tell();
    });
    slider.addEventListener("change", () => slider.form.requestSubmit());
    to.addEventListener("change", () => {
      slider.value = to.selectedIndex;
      tell();
    });
  };

  // ---- What only makes sense with a script is there with a script.
  const dress = () => {
    const every = one("#all");
    if (every && boxes().length) every.hidden = false;
    const keys = one("#keys");
    if (keys) keys.hidden = false;
    makeSlider();
    countChosen();
    tellTimes();
  };

  // ---- Keys.
  const stored = (change) => {
    // A browser may forbid storage; then the keys are as they were at first.
    try {
      if (change !== undefined) localStorage.setItem("driftline.keys", change);
      return localStorage.getItem("driftline.keys") !== "off";
    } catch {
      return true;
    }
  };
  const rows = () => all(".findings tbody tr, .newest > li");
  const step = (by) => {
    const list = rows();
    if (!list.length) return;
    const here = list.findIndex((row) => row.contains(document.activeElement));
    const next = here < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(Math.max(here + by, 0), list.length - 1);
    one("a", list[next])?.focus();
  };
  const help = () => one("#help")?.showModal();
  const does = {
    "/": () => one("#q")?.focus(),
    j: () => step(1),
    k: () => step(-1),
    x: () => document.activeElement.closest?.("tr")?.querySelector('input[name="finding"]')?.click(),
    "?": help,
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=checkbox]), select, textarea, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !stored()) return;
    if (!Object.hasOwn(does, event.key)) return;
    event.preventDefault();
    does[event.key]();
  });
  document.addEventListener("click", ({ target }) => {
    if (target.id === "keys") help();
  });
  const use = one("#use-keys");
  if (use) {
    use.checked = stored();
    use.addEventListener("change", () => stored(use.checked ? "on" : "off"));
  }

  // ---- Live. What was begun is never taken away: a page with something typed or selected only says that there is news.
  const live = one("#live");
  let known = document.body.dataset.revision;
  const isBusy = () => {
    const touched = all("main input, main select, main textarea").some((field) =>
      field.type === "checkbox" ? field.checked !== field.defaultChecked
        : field.tagName === "SELECT" ? [...field.options].some((option) => option.selected !== option.defaultSelected)
        : field.type !== "hidden" && field.type !== "range" && field.value !== field.defaultValue);
    const focused = document.activeElement?.closest("main input, main select, main textarea");
    return touched || Boolean(focused) || Boolean(one("dialog[open]")) || String(getSelection()).length > 0;
  };
  const say = (text, offer) => {
    live.replaceChildren(text);
    if (offer) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Show";
      button.addEventListener("click", () => renew(true));
      live.append(" ", button);
    }
  };
  const nameOf = (node) => node.id || node.getAttribute("href") || node.textContent;
  const renew = async (asked) => {
    let fresh;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" });
      if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
      fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      say("Something new was observed, but it cannot be shown now.", true);
      return;
    }
    if (!asked && isBusy()) {
      say("Something new was observed.", true);
      return;
    }
    const main = one("main");
    const open = new Set(all("details[open] > summary", main).map((summary) => summary.textContent));
    const held = main.contains(document.activeElement) ? nameOf(document.activeElement) : null;
    const { scrollX, scrollY } = window;
    main.replaceChildren(...one("main", fresh).childNodes);
    one(".foot p").replaceWith(one(".foot p", fresh));
    document.title = fresh.title;
    known = document.body.dataset.revision = fresh.body.dataset.revision;
    for (const summary of all("details > summary", main)) if (open.has(summary.textContent)) summary.parentElement.open = true;
    dress();
    if (held) all("a, button, summary, [tabindex]", main).find((node) => nameOf(node) === held)?.focus({ preventScroll: true });
    window.scrollTo(scrollX, scrollY);
    say("Up to date: something new was observed.", false);
    setTimeout(() => live.replaceChildren(), 6000);
  };
  // Browsers allow few connections to one server: a page that nobody sees gives its own back, and catches up later.
  let events = null;
  const listen = () => {
    if (document.hidden || events) return;
    events = new EventSource("/events");
    events.addEventListener("open", () => live.dataset.stopped && (delete live.dataset.stopped, live.replaceChildren()));
    events.addEventListener("revision", ({ data }) => {
      const { revision } = JSON.parse(data);
      if (revision === known) return;
      if (isBusy()) say("Something new was observed.", true);
      else renew(false);
    });
    events.addEventListener("error", () => {
      // The browser tries again by itself, unless the answer was a refusal.
      if (events?.readyState !== EventSource.CLOSED) return;
      rest();
      live.dataset.stopped = "yes";
      say("Not connected: this page may be out of date.", false);
      setTimeout(listen, 15000);
    });
    events.addEventListener("bye", () => {
      live.dataset.stopped = "yes";
      say("The server was stopped; this page stays as it is.", false);
    });
  };
  const rest = () => {
    events?.close();
    events = null;
  };

  dress();
  setInterval(tellTimes, 30000);
  if (known && live) {
    listen();
    document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
    addEventListener("pagehide", rest);
    addEventListener("pageshow", listen);
  }
})();

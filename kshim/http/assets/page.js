// Keeps a page current: the rows of groups are changed in place, any other page is fetched again.
"use strict";

const main = document.getElementById("main");
const live = document.getElementById("live");
const POLL_MS = 2000;
const SETTLE_MS = 150;

function showLive(is_live, text) {
  if (live.dataset.live === is_live) return;
  live.dataset.live = is_live;
  live.textContent = text;
}

// ---- the table of groups

function thousands(value) {
  return value === null ? "–" : String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function put(cell, text) {
  if (cell.textContent === text) return;
  cell.textContent = text;
  cell.classList.remove("changed");
  void cell.offsetWidth; // the animation begins anew
  cell.classList.add("changed");
}

function fill(row, group) {
  for (const name of ["members", "lag", "generation"]) {
    put(row.querySelector(`[data-name=${name}]`), thousands(group[name]));
  }
  put(row.querySelector("[data-name=protocol]"), group.protocol || "–");
  put(row.querySelector("[data-name=coordinator]"), String(group.coordinator));
  const state = row.querySelector(".state");
  if (state.dataset.state !== group.state) {
    state.dataset.state = group.state;
    put(state, group.state);
  }
}

function new_row(id) {
  const row = document.getElementById("row").content.firstElementChild.cloneNode(true);
  row.dataset.group = id;
  const link = row.querySelector("a");
  link.textContent = id;
  link.href = `/page/groups/${encodeURIComponent(id)}`;
  return row;
}

function show_groups(groups) {
  const body = document.querySelector("#groups tbody");
  const rows = new Map(Array.from(body.rows, (row) => [row.dataset.group, row]));
  for (const group of groups) {
    let row = rows.get(group.group_id);
    if (group.state === "Dead") {
      if (row) row.remove();
      rows.delete(group.group_id);
      continue;
    }
    if (!row) {
      row = new_row(group.group_id);
      rows.set(group.group_id, row);
      const next = Array.from(body.rows).find((other) => other.dataset.group > group.group_id);
      body.insertBefore(row, next || null);
    }
    fill(row, group);
  }
  document.getElementById("none").hidden = rows.size > 0;
  search();
}

// ---- any other page

let fetching = false;
let again = false;
let settles = 0;
let shown = "";

function fetch_soon() {
  clearTimeout(settles);
  settles = setTimeout(fetch_again, SETTLE_MS);
}

async function fetch_again() {
  if (fetching) {
    again = true;
    return;
  }
  fetching = true;
  again = false;
  try {
    const answer = await fetch(location.href.split("#")[0]);
    if (answer.ok) replace_main(new DOMParser().parseFromString(await answer.text(), "text/html"));
    showLive("yes", "live");
  } catch {
    showLive("no", "the server does not answer");
  } finally {
    fetching = false;
  }
  if (again) fetch_soon();
}

function replace_main(page) {
  const fresh = page.getElementById("main");
  if (fresh.innerHTML === shown) return;
  shown = fresh.innerHTML;
  const old_text = document.getElementById("search")?.value;
  const open = Array.from(main.querySelectorAll("article:has(details[open])"), (each) => each.id);
  const scroll = main.querySelector(".scroll");
  const left = scroll && scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 4 ? scroll.scrollLeft : null;
  const focus = path_of(document.activeElement);
  main.replaceChildren(...fresh.childNodes);
  for (const id of open) {
    const details = document.getElementById(id)?.querySelector("details");
    if (details) details.open = true;
  }
  begin(left);
  if (old_text) {
    document.getElementById("search").value = old_text;
    search();
  }
  focus?.();
}

// What had the focus gets it again, if it is still there.
function path_of(element) {
  if (!main.contains(element) || element === main) return null;
  const same = `${element.tagName}${element.id ? `#${CSS.escape(element.id)}` : ""}`;
  const place = Array.from(main.querySelectorAll(same)).indexOf(element);
  return () => main.querySelectorAll(same)[place]?.focus({ preventScroll: true });
}

// ---- searching, scrolling

function search() {
  const field = document.getElementById("search");
  if (!field) return;
  const text = field.value.toLowerCase();
  for (const row of main.querySelectorAll("tbody tr")) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(text);
  }
}

function begin(left) {
  const field = document.getElementById("search");
  if (field) {
    field.closest(".search").hidden = false;
    field.addEventListener("input", search);
  }
  const scroll = main.querySelector(".scroll");
  if (scroll) scroll.scrollLeft = left ?? scroll.scrollWidth;
}

document.addEventListener("keydown", (event) => {
  const field = document.getElementById("search");
  if (event.key === "/" && field && event.target.tagName !== "INPUT") {
    event.preventDefault();
    field.focus();
  }
});

// ---- live updates

function listen() {
  const [kind, ...name] = main.dataset.live.split(" ");
  if (kind === "poll") {
    setInterval(() => document.hidden || fetch_again(), POLL_MS);
    return;
  }
  const of_group = kind === "group" ? `?group=${encodeURIComponent(name.join(" "))}` : "";
  const events = new EventSource(`/events${of_group}`);
  events.addEventListener("open", () => showLive("yes", "live"));
  events.addEventListener("error", () => showLive("no", "the server does not answer"));
  if (kind === "groups") {
    events.addEventListener("groups", (event) => show_groups(JSON.parse(event.data)));
  } else {
    events.addEventListener("groups", fetch_soon);
    events.addEventListener("recorded", fetch_soon);
  }
}

begin(null);
listen();

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
  put(row.querySelector("[data-name=remarks]"), group.remarks.join("; ") || "–");
  put_last(row.querySelector("[data-name=last]"), group.last);
  const state = row.querySelector(".state");
  if (state.dataset.state !== group.state) {
    state.dataset.state = group.state;
    put(state, group.state);
  }
}

function put_last(cell, last) {
  const order = String(last ? last.ended_ms : 0);
  if (cell.dataset.order === order) return;
  cell.dataset.order = order;
  put(cell, "");
  const cause = document.createElement("span");
  const time = document.createElement("time");
  cause.textContent = last.cause;
  time.dateTime = new Date(last.ended_ms).toISOString();
  time.title = "UTC";
  time.textContent = time.dateTime.replace("T", " ");
  cell.replaceChildren(cause, " ", time);
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
  sort_again();
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
  const resetting = document.getElementById("resetting"); // somebody may be filling it in
  if (resetting) page.getElementById("resetting")?.replaceWith(resetting);
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

// ---- searching, sorting, scrolling

function search() {
  const field = document.getElementById("search");
  if (!field) return;
  const text = field.value.toLowerCase();
  let found = 0;
  for (const row of main.querySelectorAll("tbody tr")) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(text);
    found += row.hidden ? 0 : 1;
  }
  const nothing = document.getElementById("nothing");
  const says = text && !found ? `Nothing found: no ${nothing.dataset.kind} with “${field.value}”.` : "";
  if (nothing.textContent !== says) nothing.textContent = says;
}

// The chosen column and direction; null for the order in which the server lists the rows.
let sorted = null;

function value_of(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.order !== undefined) return Number(cell.dataset.order);
  const text = cell.textContent;
  if (!cell.classList.contains("number")) return text;
  const value = parseFloat(text.replace(/\u202f/g, ""));
  return Number.isNaN(value) ? -1 : value;
}

function compare(one, other) {
  return typeof one === "number" ? one - other : one.localeCompare(other, "en");
}

function sort_again() {
  const table = main.querySelector("table[data-sorts]");
  if (!table || !sorted) return;
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    if (column === sorted.column) head.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
  const rows = Array.from(table.tBodies[0].rows, (row) => [value_of(row, sorted.column), row]);
  const way = sorted.down ? -1 : 1;
  const ordered = rows.slice().sort(([one], [other]) => way * compare(one, other));
  if (ordered.some((each, place) => each !== rows[place])) {
    table.tBodies[0].append(...ordered.map(([, row]) => row));
  }
}

function sort_by(column, starts_down) {
  const down = sorted && sorted.column === column ? !sorted.down : starts_down;
  sorted = { column, down };
  sort_again();
}

// The heads of a table become buttons. Numbers are sorted from the largest on first.
function make_sortable() {
  const table = main.querySelector("table[data-sorts]");
  if (!table) return;
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = document.createElement("button");
    const is_number = head.classList.contains("number") || head.textContent === "Last rebalance";
    button.type = "button";
    button.textContent = head.textContent;
    button.addEventListener("click", () => sort_by(column, is_number));
    head.replaceChildren(button);
  });
  sort_again();
}

function begin(left) {
  const field = document.getElementById("search");
  if (field) {
    field.closest(".search").hidden = false;
    field.addEventListener("input", search);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") main.querySelector("tbody tr:not([hidden]) a")?.click();
    });
  }
  make_sortable();
  make_resettable();
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

// ---- resetting offsets: first what would change, then the change

function value_of_reset(form) {
  const [to, text] = [form.elements.to.value, form.elements.value.value.trim()];
  if (to === "time") return Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(text) ? text : `${text.replace(" ", "T")}Z`);
  return to === "shift" ? Number(text || NaN) : 0;
}

async function command(name, form) {
  const body = JSON.stringify([form.dataset.group, [], form.elements.to.value, value_of_reset(form)]);
  const headers = { "Content-Type": "application/json" };
  const answer = await (await fetch(`/commands/${name}`, { method: "POST", headers, body })).json();
  if (answer.error) throw new Error(answer.error);
  return answer.done;
}

function says(text) {
  document.getElementById("reset-says").textContent = text;
}

async function try_reset(event) {
  event.preventDefault();
  const form = event.currentTarget;
  form.elements.reset.disabled = true;
  if (!Number.isInteger(value_of_reset(form))) {
    says("A time such as 2026-11-27 18:00:00 is needed, or a whole number of records.");
    return;
  }
  try {
    const rows = await command("plan-offsets", form);
    const changed = rows.filter(([, , before, after]) => before !== after);
    const shown = changed.slice(0, 20).map(([topic, index, before, after]) => `${topic}-${index}: ${before ?? "none"} → ${after}`);
    const more = changed.length > 20 ? `, and ${changed.length - 20} more` : "";
    says(changed.length ? `Would change ${shown.join(", ")}${more}.` : "Nothing would change.");
    form.elements.reset.disabled = !changed.length;
  } catch (error) {
    says(`Not possible: ${error.message}.`);
  }
}

async function reset(event) {
  const form = event.currentTarget.form;
  form.elements.reset.disabled = true;
  try {
    const rows = await command("reset-offsets", form);
    says(`Done: ${rows.length} offsets are committed.`);
  } catch (error) {
    says(`Not possible: ${error.message}.`);
  }
}

function make_resettable() {
  const form = document.getElementById("reset");
  if (!form || form.dataset.ready) return;
  form.dataset.ready = "yes";
  document.getElementById("resetting").hidden = false;
  form.addEventListener("submit", try_reset);
  form.addEventListener("input", () => { form.elements.reset.disabled = true; });
  form.elements.reset.addEventListener("click", reset);
}

// ---- live updates

function listen() {
  const [kind, ...name] = main.dataset.live.split(" ");
  if (kind === "still") return;
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

// Draws what `agent-relay watch --json` prints. Texts are put in as texts, never as markup.
"use strict";

const token = location.hash.slice(1);
const sessions = new Map();
const MARKS = { completed: "✔", in_progress: "▸", pending: "○", cancelled: "✘" };
const MOST_EVENTS = 200;
const AGAIN_MS = 2000;
const REDRAW_MS = 15000;

function make(name, className, text) {
  const found = document.createElement(name);
  if (className) found.className = className;
  if (text !== undefined) found.textContent = text;
  return found;
}

function say(text) {
  const notice = document.getElementById("notice");
  notice.hidden = !text;
  notice.textContent = text;
}

function time(iso) {
  if (!iso) return "";
  const at = new Date(iso), clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const day = at.toDateString() === new Date().toDateString() ? {} : { month: "short", day: "numeric" };
  return at.toLocaleString([], { ...day, ...clock });
}

function clock(since) {
  const length = Math.max(0, Math.floor((Date.now() - new Date(since)) / 1000));
  const minutes = String(Math.floor(length / 60) % 60), seconds = String(length % 60).padStart(2, "0");
  return length < 3600 ? `${minutes}:${seconds}` : `${Math.floor(length / 3600)}:${minutes.padStart(2, "0")}:${seconds}`;
}

function count(number, word) {
  return number ? `${number} ${word}${number === 1 ? "" : "s"}` : "";
}

function gauge(name, percent, text) {
  const line = make("div", "gauge");
  const meter = make("meter");
  Object.assign(meter, { min: 0, max: 100, low: 70, high: 90, optimum: 0, value: Math.min(100, percent) });
  line.append(make("span", "", name), meter, make("span", "faint", text));
  return line;
}

function headline(now) {
  const head = make("h2");
  head.append(make("span", "", now.agent || "no agent"), make("span", `state ${now.state}`, now.state));
  if (now.model) head.append(make("span", "model", now.model));
  const turn = make("span", "clock faint");
  if (now.turn_since) { turn.dataset.since = now.turn_since; turn.dataset.before = `turn ${now.turns}, `; }
  else if (now.turn_s !== null) turn.textContent = `last turn ${Math.round(now.turn_s)} s`;
  head.append(turn);
  return head;
}

function limitName(rest) {
  if (rest.scope === "model" && rest.model) return `limit of ${rest.model}`;
  return { model: "model limit", account: "usage limit", billing: "credit limit", budget: "budget" }[rest.scope] || "limit";
}

function windowName({ name, minutes }) {
  const hour = 60, day = 24 * hour;
  if (!(minutes > 0)) return name.replaceAll("_", " ");
  if (minutes === 7 * day) return "week";
  if (minutes % day === 0) return minutes > day ? `${minutes / day} d` : "day";
  return minutes % hour === 0 ? `${minutes / hour} h` : `${minutes} min`;
}

function figures(now) {
  const parts = [];
  if (now.tokens) {
    const used = now.tokens, kinds = [["input", "in"], ["cached", "cached"], ["cache_write", "written"], ["output", "out"]];
    const told = kinds.filter(([key]) => used[key]).map(([key, word]) => `${used[key].toLocaleString()} ${word}`).join(", ");
    const cost = used.cost_usd ? `${used.cost_is_whole ? "" : ">"}$${Number(used.cost_usd).toFixed(2)}` : "cost unknown";
    parts.push(make("p", "tokens", `${used.total.toLocaleString()} tokens${told ? `: ${told}` : ""} · ${cost}`));
  }
  if (now.context) {
    const { used, room, percent } = now.context;
    parts.push(percent === null ? make("p", "", `context ${used.toLocaleString()} tokens`)
      : gauge("context", percent, `${percent} % of ${room.toLocaleString()}`));
  }
  for (const one of now.windows) parts.push(gauge(windowName(one), one.used_percent, `${one.used_percent} %, resets ${time(one.resets_at)}`));
  return parts;
}

function plan(now) {
  if (!now.plan.length) return [];
  const list = make("ol", "plan");
  for (const step of now.plan) list.append(make("li", step.status, `${MARKS[step.status]} ${step.text}`));
  const done = now.plan.filter((step) => step.status === "completed").length;
  return [make("h3", "", `Plan ${done}/${now.plan.length}`), list];
}

function happened(events) {
  if (!events.length) return [];
  const list = make("ul", "told");
  for (const event of [...events].reverse()) {
    const line = make("li");
    line.append(make("time", "", time(event.at)), event.text);
    list.append(line);
  }
  return [make("h3", "", "What happened"), list];
}

function draw(known) {
  const now = known.now;
  if (!now) return;
  const parts = [headline(now)];
  const title = now.task || now.title;
  if (title) parts.push(make("p", "task", title));
  if (now.about) parts.push(make("p", "about", now.about));
  if (now.trouble) parts.push(make("p", "trouble", now.trouble));
  const counts = [count(now.handoffs, "handoff"), count(now.limits, "limit"), now.root, now.session].filter(Boolean);
  parts.push(make("p", "faint", counts.join(" · ")), ...figures(now), ...plan(now));
  const below = happened(known.told);
  if (known.screen && known.screen.leg === now.leg && now.state !== "ended") {
    below.push(make("h3", "", known.screen.title ? `Screen: ${known.screen.title}` : "Screen"));
    below.push(make("pre", "", known.screen.rows.join("\n")));
  }
  // The timeline between them stays: replacing it would take the keyboard's focus away.
  known.above.replaceChildren(...parts);
  known.below.replaceChildren(...below);
}

function know(id) {
  let known = sessions.get(id);
  if (!known) {
    known = { section: make("section"), above: make("div"), below: make("div"), timeline: null, told: [], now: null, screen: null };
    known.section.id = id;
    known.section.append(known.above, known.below);
    sessions.set(id, known);
    document.getElementById("sessions").append(known.section);
  }
  return known;
}

function hear(event, changed) {
  if (event.type === "daemon") {
    for (const known of sessions.values()) if (event.state === "away") { known.screen = null; changed.add(known); }
    say(event.state === "away" ? "No daemon is running: agents keep working, but only files are read." : "");
  } else if (event.type === "resting") {
    const told = event.agents.map((one) => `${one.agent} rests until ${time(one.until) || "you say otherwise"} (${limitName(one)})`);
    if (event.unknown) told.unshift(`who rests is unknown: ${event.unknown}`);
    document.getElementById("resting").textContent = told.join(" · ");
  } else if (event.type === "days") {
    drawDays(event.days);
  } else if (event.type === "left") {
    const known = sessions.get(event.session);
    if (known) known.section.remove();
    sessions.delete(event.session);
  } else if (event.session) {
    const known = know(event.session);
    if (event.type === "session") known.now = event;
    if (event.type === "screen") known.screen = event;
    if (event.type === "timeline") return showTimeline(known, event);
    if (event.type === "event") known.told = [...known.told, event].slice(-MOST_EVENTS);
    changed.add(known);
  }
}

function showTimeline(known, told) {
  if (!known.timeline) {
    known.timeline = new TimelineView();
    known.above.after(known.timeline.element);
  }
  known.timeline.show(told);
}

function redraw() {
  if (document.hidden) return;
  for (const known of sessions.values()) if (known.timeline && !known.timeline.told.is_over) known.timeline.draw();
}

function tick() {
  for (const one of document.querySelectorAll("[data-since]")) {
    const text = one.dataset.before + clock(one.dataset.since);
    if (one.textContent !== text) one.textContent = text;
  }
}

function take(lines) {
  const changed = new Set();
  for (const line of lines) if (line) hear(JSON.parse(line), changed);
  changed.forEach(draw);
  document.getElementById("nobody").hidden = sessions.size > 0;
  tick();
}

async function follow() {
  const answer = await fetch("/events", { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" });
  if (answer.status === 401) return "This address is not valid any more: take the new one from the terminal.";
  if (!answer.ok) throw new Error(`${answer.status}`);
  sessions.forEach((known) => known.section.remove());
  sessions.clear();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("ended");
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    take(lines);
  }
}

async function run() {
  for (;;) {
    try {
      const end = await follow();
      if (end) return say(end);
    } catch {
      say("agent-relay watch does not answer; trying again …");
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

setInterval(tick, 1000);
setInterval(redraw, REDRAW_MS);
run();

// Draws a session's `timeline` event and the `days` event. Texts are put in as texts, never as markup.
"use strict";

const GAP_SHARE = 0.02;
const SVG = "http://www.w3.org/2000/svg";
const HANDOFFS_SHOWN = 6;

function span(begin, end) {
  const seconds = Math.max(0, (end - begin) / 1000), minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (minutes < 60) return `${minutes} min`;
  return hours < 48 ? `${hours} h ${String(minutes % 60).padStart(2, "0")}` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function money(cost, isWhole) {
  if (!cost) return "cost unknown";
  const dollars = Number(cost);
  return `${isWhole ? "" : ">"}$${dollars.toFixed(dollars >= 1 || !dollars ? 2 : 4)}`;
}

function usageText(usage) {
  if (usage.tokens === null) return "tokens unknown";
  const least = usage.tokens_are_whole ? "" : "at least ";
  return `${least}${usage.tokens.toLocaleString()} tokens, ${money(usage.cost_usd, usage.cost_is_whole)}`;
}

// Moments to shares of the width: evenly, but a gap takes 2 % however long it is.
function buildAxis(told, now) {
  const begin = new Date(told.begin).getTime(), last = new Date(told.last).getTime();
  const end = told.is_over ? last : Math.max(now, last);
  const gaps = told.gaps.map((gap) => [new Date(gap.begin).getTime(), new Date(gap.end).getTime()]);
  if (!told.is_busy && end - last > told.idle_s * 1000) gaps.push([last, end]);
  const total = end - begin - gaps.reduce((sum, [from, to]) => sum + to - from, 0);
  const room = 1 - GAP_SHARE * gaps.length;
  const find = (at) => {
    const moment = Math.min(Math.max(at, begin), end);
    let passed = moment - begin, share = 0;
    for (const [from, to] of gaps) {
      if (moment < from) break;
      passed -= Math.min(moment, to) - from;
      if (moment >= to) share += GAP_SHARE;
    }
    return share + (total > 0 ? (passed / total) * room : 0);
  };
  return { begin, end, gaps, find };
}

function placed(element, axis, begin, end) {
  const from = axis.find(new Date(begin).getTime()), to = end ? axis.find(new Date(end).getTime()) : axis.find(axis.end);
  element.style.left = `${(100 * from).toFixed(3)}%`;
  element.style.width = `${(100 * Math.max(0, to - from)).toFixed(3)}%`;
  return element;
}

function restEnd(rest, axis) {
  if (rest.end || !rest.scope || !rest.until) return rest.end;
  return new Date(rest.until).getTime() < axis.end ? rest.until : "";
}

function legText(leg, agent) {
  const end = leg.end ? `${time(leg.end)}, ${leg.how}` : "now, runs";
  const kinds = [leg.model, leg.resumes ? "in its earlier conversation" : "", leg.headless ? "without a screen" : ""];
  const about = kinds.filter(Boolean).join(", ");
  const turns = count(leg.turn_count, "turn") || "no turns";
  return `Leg ${leg.number}, ${agent}${about ? ` (${about})` : ""}: ${time(leg.begin)} to ${end}; ${turns}, ${usageText(leg.usage)}`;
}

function turnText(turn) {
  const name = turn.count > 1 ? `${turn.count} turns` : `Turn ${turn.number}`;
  const length = turn.end ? span(new Date(turn.begin), new Date(turn.end)) : "under way";
  return `${name}, ${time(turn.begin)}, ${length}${turn.prompt ? `: ${turn.prompt}` : ""}`;
}

function restText(rest, agent) {
  const who = agent ? `${agent} ${rest.end ? "rested" : "rests"}` : `The session ${rest.end ? "rested" : "rests"}`;
  const until = rest.end ? ` to ${time(rest.end)}` : rest.until ? `, until ${time(rest.until)}` : ", reset unknown";
  return `${who} from ${time(rest.begin)}${until} (${rest.scope ? limitName(rest) : rest.why || "no agent was available"})`;
}

function handoffText(one, number) {
  const took = one.end ? `${one.status}, ${span(new Date(one.begin), new Date(one.end))}` : one.status;
  return `Handoff ${number}, ${time(one.begin)}: ${one.from_agent} to ${one.to_agent}, ${one.reason} (${took})${one.why ? `: ${one.why}` : ""}`;
}

// The drawing, and the same as a list. One stop for the Tab key; arrow keys go from one leg or handoff to the next, and its text is shown below.
class TimelineView {
  constructor() {
    this.element = make("figure", "timeline");
    this.heading = make("h3", "", "Timeline");
    this.rows = make("div", "rows");
    this.rows.setAttribute("role", "group");
    this.detail = make("p", "detail faint");
    this.handoffs = make("ul", "passings");
    this.list = make("details");
    this.table = make("tbody");
    const table = make("table");
    table.append(this.table);
    this.list.append(make("summary", "", "As a list"), table);
    this.element.append(this.heading, this.rows, drawLegend(), this.detail, this.handoffs, this.list);
    this.told = null;
    this.chosen = "";
    this.rows.addEventListener("keydown", (event) => this.move(event));
  }

  show(told) {
    this.told = told;
    this.draw();
  }

  draw() {
    const { told } = this, axis = buildAxis(told, Date.now());
    const hadFocus = this.rows.contains(document.activeElement);
    const parts = [count(told.turn_count, "turn") || "no turns", usageText(told.usage)];
    const until = told.is_over ? time(told.last) : "now";
    const first = told.legs_left_out + told.lanes.reduce((sum, lane) => sum + lane.legs.length, 0);
    const summary = `${time(told.begin)} to ${until}, ${span(axis.begin, axis.end)}, ${count(first, "leg")}, ${parts.join(", ")}`;
    this.heading.textContent = `Timeline: ${summary}`;
    this.rows.setAttribute("aria-label", `Timeline, ${summary}; arrow keys choose a leg or a handoff`);
    this.stops = [];
    const rows = told.lanes.map((lane) => this.drawLane(lane, axis));
    if (told.rests.length) rows.push(this.drawRow("at rest", told.rests.map((rest) => this.drawRest(rest, "", axis))));
    if (told.handoffs.length) rows.push(this.drawHandoffs(axis));
    rows.push(this.drawScale(axis));
    this.rows.replaceChildren(...rows);
    const newest = this.stops.findLast((stop) => stop.classList.contains("leg"));
    this.choose(this.stops.find((stop) => stop.dataset.key === this.chosen) || newest, hadFocus);
    this.handoffs.replaceChildren(...this.listHandoffs().slice(-HANDOFFS_SHOWN).map(([, text]) => make("li", "", text)));
    this.table.replaceChildren(...this.listLines());
  }

  drawRow(name, marks) {
    const row = make("div", "lane"), track = make("div", "track");
    track.append(...marks);
    row.append(make("span", "who", name), track);
    return row;
  }

  drawLane(lane, axis) {
    const marks = lane.rests.map((rest) => this.drawRest(rest, lane.agent, axis));
    for (const leg of lane.legs) {
      marks.push(this.stop(placed(make("button", "leg", `${leg.number}`), axis, leg.begin, leg.end), leg.leg, legText(leg, lane.agent)));
      for (const turn of leg.turns) {
        const mark = placed(make("span", "turn"), axis, turn.begin, turn.end);
        mark.title = turnText(turn);
        marks.push(mark);
      }
    }
    const row = this.drawRow(lane.agent || "unknown", marks);
    const windows = lane.windows.map((one) => `${windowName(one)} ${one.used_percent} %`);
    const figures = [count(lane.turn_count, "turn"), usageText(lane.usage), ...windows].filter(Boolean);
    row.append(make("span", "figures faint", figures.join(" · ")));
    return row;
  }

  drawRest(rest, agent, axis) {
    const mark = placed(make("span", "rest"), axis, rest.begin, restEnd(rest, axis));
    mark.title = restText(rest, agent);
    return mark;
  }

  drawHandoffs(axis) {
    const marks = this.told.handoffs.map((one, index) => {
      const number = this.told.handoffs_left_out + index + 1;
      const mark = placed(make("button", "passing", `${number}`), axis, one.begin, one.begin);
      mark.style.width = "";
      return this.stop(mark, one.handoff, handoffText(one, number));
    });
    return this.drawRow("handoffs", marks);
  }

  drawScale(axis) {
    const marks = axis.gaps.map(([from, to]) => {
      const mark = placed(make("span", "gap", "≈"), axis, from, to), share = axis.find(from);
      if (axis.gaps.length < 4 && share > 0.12 && share < 0.8) mark.textContent = `≈ ${span(from, to)}`;
      mark.title = `${span(from, to)} left out`;
      return mark;
    });
    const begin = make("time", "", time(new Date(axis.begin))), end = make("time", "end", time(new Date(axis.end)));
    const row = this.drawRow("", [begin, ...marks, end]);
    row.classList.add("scale");
    return row;
  }

  stop(button, key, text) {
    button.type = "button";
    button.tabIndex = -1;
    button.dataset.key = key;
    button.title = text;
    button.setAttribute("aria-label", text);
    button.addEventListener("focus", () => this.choose(button, false));
    this.stops.push(button);
    return button;
  }

  choose(button, focuses) {
    for (const other of this.stops) other.tabIndex = -1;
    if (!button) return;
    button.tabIndex = 0;
    this.chosen = button.dataset.key;
    if (focuses) button.focus({ preventScroll: true });
    if (this.detail.textContent !== button.title) this.detail.textContent = button.title;
  }

  move(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const place = this.stops.indexOf(document.activeElement);
    if (place < 0 || (!step && event.key !== "Home" && event.key !== "End")) return;
    event.preventDefault();
    const next = event.key === "Home" ? 0 : event.key === "End" ? this.stops.length - 1 : place + step;
    this.choose(this.stops[Math.min(Math.max(next, 0), this.stops.length - 1)], true);
  }

  listHandoffs() {
    return this.told.handoffs.map((one, index) => [one.begin, handoffText(one, this.told.handoffs_left_out + index + 1)]);
  }

  listLines() {
    const { told } = this, lines = [];
    for (const lane of told.lanes) {
      for (const leg of lane.legs) lines.push([leg.begin, legText(leg, lane.agent)]);
      for (const rest of lane.rests) lines.push([rest.begin, restText(rest, lane.agent)]);
    }
    for (const rest of told.rests) lines.push([rest.begin, restText(rest, "")]);
    lines.push(...this.listHandoffs());
    lines.sort(([one], [other]) => new Date(one) - new Date(other));
    const texts = lines.map(([, text]) => text);
    if (told.legs_left_out) texts.unshift(`${count(told.legs_left_out, "earlier leg")} left out`);
    if (told.clock_was_set_back) texts.push("The clock was set back meanwhile: what is shown at one moment may be an hour apart.");
    return texts.map((text) => {
      const row = make("tr");
      row.append(make("td", "", text));
      return row;
    });
  }
}

function drawLegend() {
  const legend = make("p", "legend faint");
  for (const [name, text] of [["leg", "leg"], ["turn", "turn"], ["rest", "rests at a limit"]]) legend.append(make("span", name), `${text} `);
  legend.append("≈ time left out");
  return legend;
}

function bar(share) {
  const svg = document.createElementNS(SVG, "svg"), box = document.createElementNS(SVG, "rect");
  svg.setAttribute("aria-hidden", "true");
  box.setAttribute("width", `${(100 * Math.min(1, share)).toFixed(2)}%`);
  box.setAttribute("height", "100%");
  svg.append(box);
  return svg;
}

function drawDays(days) {
  const tokens = Math.max(0, ...days.map((day) => day.tokens || 0)), costs = Math.max(0, ...days.map((day) => Number(day.cost_usd) || 0));
  const head = make("tr");
  for (const name of ["Day", "Tokens", "", "Cost", ""]) head.append(name ? Object.assign(make("th", "", name), { scope: "col" }) : make("td"));
  const rows = days.map((day) => {
    const row = make("tr"), cells = [make("td", "number"), make("td", "bar"), make("td", "number"), make("td", "bar")];
    const name = Object.assign(make("th", "", day.day || "…"), { scope: "row" });
    if (!day.day) {
      cells.splice(1);
      cells[0].colSpan = 4;
      cells[0].className = "faint";
      cells[0].textContent = `${day.empty_days.toLocaleString()} days without usage`;
    } else {
      cells[0].textContent = day.tokens === null ? "unknown" : day.tokens.toLocaleString();
      if (day.tokens) cells[1].append(bar(day.tokens / tokens));
      cells[2].textContent = day.empty_days ? "-" : day.cost_usd ? money(day.cost_usd, day.cost_is_whole) : "unknown";
      if (Number(day.cost_usd) > 0) cells[3].append(bar(Number(day.cost_usd) / costs));
    }
    row.append(name, ...cells);
    return row;
  });
  document.getElementById("days").hidden = !days.length;
  document.querySelector("#days table").replaceChildren(head, ...rows);
}

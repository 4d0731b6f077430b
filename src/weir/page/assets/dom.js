// Elements, and how figures are written. Foreign text only ever becomes text nodes and attributes.

const SVG = "http://www.w3.org/2000/svg";
// What would turn the direction of writing or is invisible is shown as its escape; not what joins
// letters or chooses their form, as scripts and emoji need.
const HIDDEN = /(?![\t\n\u034f\u200c\u200d\p{Variation_Selector}])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

function clean(text) {
  return String(text).replace(HIDDEN, (c) => c.split("").map((unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0")).join(""));
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "css") for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else element.setAttribute(name, clean(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : clean(child));
  }
  return element;
}

function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// --- figures --------------------------------------------------------------------------------

function count(number) {
  return Math.round(number).toLocaleString("en-US");
}

function short(number) {
  const size = Math.abs(number);
  if (size < 10 && size % 1) return number.toFixed(1);
  if (size < 10000) return count(number);
  for (const [unit, name] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (size >= unit) return (number / unit).toFixed(size / unit < 100 ? 1 : 0) + name;
  }
}

function bytes(number) {
  if (number < 1000) return `${count(number)} B`;
  for (const [unit, name] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (number >= unit) return `${(number / unit).toFixed(number / unit < 100 ? 1 : 0)} ${name}`;
  }
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.0995) return `${(value * 1e3).toFixed(value < 0.00995 ? 1 : 0)} ms`;
  if (value < 99.5) return `${value.toFixed(value < 9.95 ? 2 : 1)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  return value < 172800 ? `${(value / 3600).toFixed(1)} h` : `${Math.round(value / 86400)} days`;
}

function eventSpan(ticks, view) {
  return view.plain_ticks ? `${short(ticks)} ${ticks === 1 ? "tick" : "ticks"}` : seconds(ticks / 1e6);
}

function moment(time) {
  const date = new Date(time * 1000);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

function clock(time, digits) {
  const text = moment(time);
  return text === null ? `${time} s` : text.slice(11, digits ? 23 : 19);
}

function day(time) {
  const text = moment(time);
  return text === null ? `${time} s since 1970` : text.slice(0, 19).replace("T", " ") + " UTC";
}

const END = 9.2e18;

function eventTime(ticks, type) {
  if (ticks === null || ticks === undefined) return "–";
  if (ticks >= END) return "the end";
  if (type !== "TIMESTAMP") return count(ticks);
  const text = moment(ticks / 1e6);
  return text === null ? String(ticks) : text.slice(0, 23).replace("T", " ");
}

function plural(number, word, many) {
  return `${count(number)} ${number === 1 ? word : many || word + "s"}`;
}

function sum(values) {
  return values.reduce((a, b) => a + b, 0);
}

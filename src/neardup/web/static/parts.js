// Small parts that every view uses.

const { html, render, createContext, useState, useEffect, useLayoutEffect, useMemo, useRef, useContext, useCallback } = htmPreact;

// Milliseconds after the last key before a search starts.
const TYPING_PAUSE = 120;
// Characters of an id: a longer one is shown by its beginning and its end, here and in a tooltip.
const MAX_OF_ID = 100;
const START_OF_ID = 64;
const END_OF_ID = 24;
const MAX_OF_TITLE = 4096;
// Hidden characters become an element each, so that a hostile id of a megabyte would stop the browser.
const MAX_OF_WHOLE_ID = 50_000;

const Shared = createContext(null);
/** Source, marks and theme of the page. */
const useShared = () => useContext(Shared);

const NUMBER = new Intl.NumberFormat("en");
const count = (number) => NUMBER.format(number);
const plural = (number, one, many = one + "s") => `${count(number)} ${number === 1 ? one : many}`;
const percent = (ratio, digits = 1) => `${(100 * ratio).toFixed(digits)} %`;
const similar = (value) => (value === null || value === undefined ? "–" : floorTo(value, 4));
// 0.99996 is not 1.
const floorTo = (value, digits) => (Math.floor(value * 10 ** digits + 1e-9) / 10 ** digits).toFixed(value === 1 ? 1 : digits);

function bytes(number) {
  for (const [size, name] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (number >= size) return `${(number / size).toFixed(number < 10 * size ? 1 : 0)} ${name}`;
  }
  return `${number} B`;
}

/** A text of a document: only ever text, with invisible and reordering characters spelled out. */
function Visible({ text, isLine = false }) {
  const parts = useMemo(() => cutHidden(text, isLine), [text, isLine]);
  if (parts.length === 1) return parts[0];
  return parts.map((part, at) => (at % 2 ? html`<span class="hidden-character" title="an invisible or reordering character">${part}</span>` : part));
}

/** The beginning and the end of an id that lists, titles and labels show; the end is null if that is all of it. */
function cutId(id) {
  if (id.length <= MAX_OF_ID) return [id, null];
  // No half of a surrogate pair.
  return [id.slice(0, START_OF_ID).replace(/[\ud800-\udbff]$/, ""), id.slice(-END_OF_ID).replace(/^[\udc00-\udfff]/, "")];
}

const spelled = (id) => cutHidden(id, true).join("");

/** An id for an attribute, which can neither isolate nor mark a part of it. */
function labelOf(id) {
  const [start, end] = cutId(id);
  return end === null ? spelled(start) : `${spelled(start)}…${spelled(end)}`;
}

/** The id of a document on one line, with a long one cut in the middle. */
function Id({ id }) {
  const [start, end] = cutId(id);
  if (end === null) return html`<bdi class="id"><${Visible} text=${start} isLine /></bdi>`;
  const title = spelled(id.slice(0, MAX_OF_TITLE)) + (id.length > MAX_OF_TITLE ? "…" : "");
  return html`<bdi class="id" title=${title}><${Visible} text=${start} isLine /><span class="id-cut">…</span><${Visible} text=${end} isLine /></bdi>`;
}

/** Below a title with a cut id: the whole id, to read and to copy. */
function WholeId({ id }) {
  const [isOpen, setOpen] = useState(false);
  const [isCopied, setCopied] = useState(false);
  if (cutId(id)[1] === null) return null;
  const copy = () => navigator.clipboard.writeText(id).then(() => setCopied(true), () => setCopied(false));
  return html`<details class="whole-id" onToggle=${(event) => setOpen(event.currentTarget.open)}><summary>The whole id, ${count(id.length)} characters</summary>
    ${isOpen && html`<div class="actions"><button onClick=${copy}>${isCopied ? "Copied" : "Copy the whole id"}</button></div>
    <div class="text" tabindex="0" role="group" aria-label="whole id"><bdi><${Visible} text=${id.slice(0, MAX_OF_WHOLE_ID)} isLine /></bdi></div>
    ${id.length > MAX_OF_WHOLE_ID && html`<p class="caption cut-here">Cut here: ${count(MAX_OF_WHOLE_ID)} of ${count(id.length)} characters. The button copies all of them.</p>`}`}</details>`;
}

const placeOf = (one) => (one.file === null ? `row ${one.row}` : `${one.file}, row ${one.row}`);

/** A similarity with a meter from the threshold to 1. */
function Similarity({ value, threshold }) {
  const isBelow = value !== null && value !== undefined && value < threshold;
  const filled = threshold < 1 ? Math.max(0.04, ((value || 0) - threshold) / (1 - threshold)) : 1;
  const kind = isBelow ? " below" : value === 1 ? " identical" : "";
  return html`<span class=${`similarity${kind}`} title=${isBelow ? "below the threshold of the run" : null}>
    <span class="meter" aria-hidden="true"><span style=${{ width: `${isBelow ? 0 : 100 * filled}%` }}></span></span>
    <span class="figure">${similar(value)}</span>
  </span>`;
}

/** Name the tab after what it shows. */
function useTitle(title) {
  const { source } = useShared();
  useEffect(() => {
    if (title) document.title = `${title.slice(0, MAX_OF_ID)} · ${source.info.name}`;
  }, [title]);
}

/** What an entry of the history remembers of its view, so that Back finds the same place. */
const remembered = () => (history.state && typeof history.state === "object" ? history.state : {});
const remember = (values) => history.replaceState({ ...remembered(), ...values }, "");

/** Load something: `isSlow` after a second, `error` if it fails. */
function useLoaded(load, inputs) {
  const [state, setState] = useState({ value: null, error: null, isSlow: false });
  useEffect(() => {
    let isCurrent = true;
    const timer = setTimeout(() => isCurrent && setState((before) => ({ ...before, isSlow: true })), 1000);
    load().then(
      (value) => isCurrent && setState({ value, error: null, isSlow: false }),
      (error) => isCurrent && setState({ value: null, error, isSlow: false }),
    ).finally(() => clearTimeout(timer));
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, inputs);
  return state;
}

function Loaded({ state, children }) {
  if (state.error) return html`<${Failure} error=${state.error} />`;
  return html`${state.isSlow && html`<div class="loading" role="progressbar" aria-label="loading"></div>`}
    ${state.value !== null && children(state.value)}`;
}

const Failure = ({ error }) => html`<div class="notice" role="alert">
  <p><strong><${Visible} text=${error.message} /></strong></p>
  ${error.hint && html`<p><${Prose} text=${error.hint} /></p>`}
</div>`;

/** A sentence of ours, with what stands between backticks as code. */
const Prose = ({ text }) => text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : html`<${Visible} text=${part} />`));

const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** A button that marks a removed document to be kept, or a kept one to be removed. */
function MarkButton({ one, isSmall }) {
  const { marks, source } = useShared();
  const mark = marks.get(one.key);
  const wanted = one.kept === null || one.kept === undefined ? "remove" : "keep";
  const label = wanted === "keep" ? "Should be kept" : "Should be removed";
  if (source.info.texts.state !== "here") {
    return html`<button class="mark" disabled title="A decision identifies a document by a digest of its text, which is not available.">${label}</button>`;
  }
  // A server leaves the digest out of long lists.
  const change = async () => marks.set(one.digest ? one : await source.document(one.key), mark ? null : wanted);
  return html`<button class=${"mark" + (mark ? " is-marked" : "")} aria-pressed=${mark ? "true" : "false"} data-mark
    title=${wanted === "keep" ? "mark: this removal is wrong" : "mark: this document should be removed"} onClick=${change}>
    ${mark ? "✓ " : ""}${isSmall ? (wanted === "keep" ? "Keep" : "Remove") : label}</button>`;
}

/** A list of any length; only the visible rows are built. */
function VirtualList({ total, rowHeight, load, row, label, inputs }) {
  const outer = useRef(null);
  const [scroll, setScroll] = useState(() => remembered().list || 0);
  const [height, setHeight] = useState(600);
  const [pages, setPages] = useState(new Map());
  const [error, setError] = useState(null);
  const isFirst = useRef(true);
  const size = 100;
  useLayoutEffect(() => {
    const measure = () => outer.current && setHeight(outer.current.clientHeight);
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  useLayoutEffect(() => {
    if (isFirst.current) outer.current.scrollTop = scroll;
  }, []);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    setPages(new Map());
    if (outer.current) outer.current.scrollTop = 0;
    setScroll(0);
  }, inputs);
  useEffect(() => {
    const timer = setTimeout(() => remember({ list: scroll }), 100);
    return () => clearTimeout(timer);
  }, [scroll]);
  const first = Math.max(0, Math.floor(scroll / rowHeight) - 10);
  const last = Math.min(total, Math.ceil((scroll + height) / rowHeight) + 10);
  const firstPage = Math.floor(first / size), lastPage = Math.max(firstPage, Math.floor((last - 1) / size));
  useEffect(() => {
    let isCurrent = true;
    for (let page = firstPage; page <= lastPage; page++) {
      if (pages.has(page)) continue;
      load(page * size, size).then((rows) => isCurrent && setPages((before) => new Map(before).set(page, rows)), setError);
    }
    return () => { isCurrent = false; };
  }, [firstPage, lastPage, pages, ...inputs]);
  const shown = [];
  for (let at = first; at < last; at++) {
    const value = pages.get(Math.floor(at / size))?.[at % size];
    shown.push(html`<div key=${at} class="virtual-row" role="row" aria-rowindex=${at + 2}
      style=${{ transform: `translateY(${at * rowHeight}px)`, height: `${rowHeight}px` }}>
      ${value ? row(value, at) : html`<span class="waiting" role="cell">…</span>`}</div>`);
  }
  if (error) return html`<${Failure} error=${error} />`;
  return html`<div class="virtual" ref=${outer} role="rowgroup" aria-label=${label} tabindex="0"
    onScroll=${(event) => setScroll(event.currentTarget.scrollTop)}>
    <div class="virtual-inner" style=${{ height: `${total * rowHeight}px` }}>${shown}</div></div>`;
}

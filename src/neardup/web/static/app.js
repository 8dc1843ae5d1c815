// The page: views by fragment, keyboard, theme.

const VIEWS_OF_PAIRS = [["", "Overview"], ["pairs", "Pairs"]];
const VIEWS = [["", "Overview"], ["clusters", "Clusters"], ["search", "Search"], ["review", "Review"]];

function parseFragment() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  return { name, numbers: rest.map(Number), params: new URLSearchParams(query) };
}

function go(name, values) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value)).toString();
  location.replace(`#/${name}${query ? `?${query}` : ""}`);
}

function View({ route }) {
  const { name, numbers, params } = route;
  const isNumber = (at) => Number.isSafeInteger(numbers[at]) && numbers[at] >= 0;
  if (name === "") return html`<${Overview} params=${params} />`;
  if (name === "pairs") return html`<${PairList} params=${params} />`;
  if (name === "clusters") return html`<${ClusterList} params=${params} />`;
  if (name === "cluster" && isNumber(0)) return html`<${ClusterView} key=${numbers[0]} number=${numbers[0]} />`;
  if (name === "pair" && isNumber(0) && isNumber(1)) return html`<${PairView} key=${numbers.join()} a=${numbers[0]} b=${numbers[1]} params=${params} />`;
  if (name === "document" && isNumber(0)) return html`<${DocumentView} key=${numbers[0]} number=${numbers[0]} />`;
  if (name === "search") return html`<${Search} params=${params} />`;
  if (name === "review") return html`<${Review} />`;
  return html`<${Failure} error=${new PageError("There is no such view.", "Use the links above.")} />`;
}

function Page({ source, marks }) {
  const [route, setRoute] = useState(parseFragment);
  const [theme, setTheme] = useState(() => {
    try { return localStorage.getItem("neardup:theme") || "auto"; } catch { return "auto"; }
  });
  const [, redraw] = useState(0);
  const main = useRef(null), help = useRef(null);
  const views = { index: VIEWS.slice(0, 1), pairs: VIEWS_OF_PAIRS }[source.info.kind] || VIEWS;
  useEffect(() => {
    let path = location.hash.split("?")[0];
    const change = () => {
      setRoute(parseFragment());
      const before = path;
      path = location.hash.split("?")[0];
      // A new entry of the history begins at the top; an old one where it was left.
      if (path === before && remembered().top === undefined) return;
      const top = remembered().top || 0;
      scrollTo(0, top);
      [50, 200, 500].forEach((wait) => top && setTimeout(() => remembered().top === top && scrollTo(0, top), wait));
    };
    let timer = null;
    const note = () => {
      clearTimeout(timer);
      timer = setTimeout(() => remember({ top: scrollY }), 100);
    };
    history.scrollRestoration = "manual";
    addEventListener("hashchange", change);
    addEventListener("scroll", note, { passive: true });
    return () => {
      removeEventListener("hashchange", change);
      removeEventListener("scroll", note);
    };
  }, []);
  useEffect(() => {
    // A server reads and indexes the texts while the page is already shown.
    if (!source.isServed || isReady(source.info)) return undefined;
    const timer = setInterval(async () => {
      try {
        source.info = await source.refresh();
        source.lost = null;
      } catch (error) {
        source.lost = error;
      }
      redraw((times) => times + 1);
      if (!source.lost && isReady(source.info)) clearInterval(timer);
    }, 1000);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => marks.listen(() => redraw((times) => times + 1)), []);
  useLayoutEffect(() => {
    document.documentElement.dataset.theme = theme;
    try { localStorage.setItem("neardup:theme", theme); } catch { /* it is only a preference */ }
    redraw((times) => times + 1);
  }, [theme]);
  useEffect(() => {
    const name = views.find(([path]) => path === route.name)?.[1];
    if (name) document.title = `${name} · ${source.info.name}`;
  }, [route.name]);
  useEffect(() => {
    const press = (event) => handleKey(event, main.current, help.current, marks, source.info.kind);
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const next = { auto: "light", light: "dark", dark: "auto" };
  return html`<${Shared.Provider} value=${{ source, marks, theme, go }}>
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to content</a>
    <header class="top"><div class="inner">
      <a class="brand" href="#/"><strong>neardup</strong> <span><${Visible} text=${source.info.name} /></span></a>
      <nav aria-label="views">${views.map(([path, label]) => html`<a href=${`#/${path}`} aria-current=${route.name === path ? "page" : null}>${label}${path === "review" && marks.all().length ? html` <span class="badge">${marks.all().length}</span>` : ""}</a>`)}</nav>
      <div class="tools"><button onClick=${() => setTheme(next[theme])} title="light, dark, or as the system is set">Theme: ${theme}</button>
        <button aria-label="keyboard help" onClick=${() => help.current.showModal()}>?</button></div>
    </div></header>
    ${source.lost ? html`<div class="progress"><${Failure} error=${source.lost} /></div>` : html`<${Progress} info=${source.info} />`}
    <main id="main" ref=${main} tabindex="-1"><${Boundary} route=${location.hash}><${View} route=${route} /><//></main>
    <footer class="foot"><p>${source.isServed ? "Served from this machine only." : "A single file that makes no network requests."}</p></footer>
    <${Help} dialog=${help} keys=${source.info.kind === "pairs" ? KEYS_OF_PAIRS : KEYS} />
  <//>`;
}

/** Whether the server has read and indexed all texts, or never will. */
function isReady({ texts }) {
  if (!texts || texts.state === "absent") return true;
  return texts.state === "here" && (!texts.search || texts.search.error !== null || texts.search.indexed >= texts.search.documents);
}

/** How far the server is with the texts. */
function Progress({ info }) {
  if (isReady(info)) return null;
  if (info.texts.state === "reading") return html`<div class="progress" role="status"><div class="loading" role="progressbar" aria-label="reading the texts"></div><p class="caption">Reading the texts…</p></div>`;
  const { indexed, documents } = info.texts.search, done = Math.floor((100 * indexed) / documents);
  return html`<div class="progress"><div class="bar" role="progressbar" aria-label="indexing words" aria-valuenow=${done} aria-valuemin="0" aria-valuemax="100"><span style=${{ width: `${done}%` }}></span></div>
    <p class="caption">Indexing the words of all texts for search: ${done} %</p></div>`;
}

/** Shows an error of a view instead of a blank page. */
class Boundary extends htmPreact.Component {
  componentDidCatch(error) { this.setState({ error, at: this.props.route }); }
  render({ children, route }) {
    return this.state.error && this.state.at === route ? html`<${Failure} error=${this.state.error} />` : children;
  }
}

const KEYS = [["j / k", "next / previous row"], ["Enter", "open the row"], ["/", "search"], ["o c r", "overview, clusters, review"], ["n / p", "next / previous difference of a pair"], ["y n space", "in a review: the same, not the same, skip"], ["u", "undo the last mark"], ["?", "this help"]];

const KEYS_OF_PAIRS = [...KEYS.slice(0, 3), ["o c", "overview, pairs"], ["n / p", "next / previous difference of a pair"], ["?", "this help"]];

const Help = ({ dialog, keys }) => html`<dialog ref=${dialog} aria-labelledby="help-title"><h2 id="help-title">Keyboard</h2>
  <dl class="facts">${keys.map(([key, meaning]) => html`<dt><kbd>${key}</kbd></dt><dd>${meaning}</dd>`)}</dl>
  <form method="dialog"><button class="main">Close</button></form></dialog>`;

function handleKey(event, main, help, marks, kind) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (help.open && event.key !== "?") return;
  const actions = {
    j: () => moveFocus(main, 1),
    k: () => moveFocus(main, -1),
    "/": () => { location.hash = "#/search"; setTimeout(() => document.getElementById("search")?.focus(), 50); },
    o: () => { location.hash = "#/"; },
    c: () => { location.hash = "#/clusters"; },
    r: () => { location.hash = "#/review"; },
    n: () => (document.getElementById("judge-n") || document.getElementById("next-change"))?.click(),
    p: () => document.getElementById("previous-change")?.click(),
    y: () => document.getElementById("judge-y")?.click(),
    u: () => marks.undo(),
    "?": () => (help.open ? help.close() : help.showModal()),
  };
  if (kind === "pairs") {
    actions.c = () => { location.hash = "#/pairs"; };
    actions["/"] = () => { actions.c(); setTimeout(() => document.getElementById("search")?.focus(), 50); };
    delete actions.r;
    delete actions.u;
  }
  const skip = document.getElementById("judge-skip");
  if (skip && !event.target.closest("button, a, summary")) actions[" "] = () => skip.click();
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
}

function moveFocus(main, step) {
  const rows = [...main.querySelectorAll("[data-row]")].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

openSource().then(
  (source) => render(html`<${Page} source=${source} marks=${openMarks(source.info.run || source.info.name)} />`, document.getElementById("page")),
  (error) => render(html`<main id="main"><${Failure} error=${error} /></main>`, document.getElementById("page")),
);

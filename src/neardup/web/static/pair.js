// Two documents side by side, aligned as in a code review: what differs, and what lies in shared passages.

// Equal rows that stay visible beside a row that differs.
const ROWS_AROUND = 1;
const LONG_TEXTS = 8000;

function PairView({ a, b, params }) {
  const { source } = useShared();
  const state = useLoaded(() => source.pair(a, b), [a, b, source.info.texts.state]);
  return html`<${Loaded} state=${state}>${(pair) => html`<${Pair} pair=${pair} info=${source.info} params=${params} />`}<//>`;
}

function Pair({ pair, info, params }) {
  const { a, b } = pair;
  const isListed = info.kind === "pairs";
  const hasTexts = a.text !== null && b.text !== null;
  const [isShort, setShort] = useState(hasTexts && a.text.length + b.text.length > LONG_TEXTS);
  const passages = useMemo(() => readPassages(pair), [pair]);
  // A new object for every click, so that the same passage can be chosen again.
  const [chosen, setChosen] = useState(null);
  useEffect(() => setChosen(null), [pair]);
  const choose = (row) => {
    // What differs alone would hide most of a passage.
    setShort(false);
    // The two places may be far apart: the first click shows the left one, the next one the right one.
    setChosen((before) => ({ row, side: before && before.row === row && before.side === "a" ? "b" : "a" }));
  };
  const spans = useMemo(() => (passages ? passages.rows.filter((row) => row.a && row.b) : []), [passages]);
  const cluster = a.kept ?? (b.kept === a.key ? a.key : b.kept ?? a.key);
  useTitle(`${a.id} and ${b.id}`);
  return html`<div class="crumbs">${isListed ? html`<a href="#/pairs">Pairs</a>` : html`<a href="#/clusters">Clusters</a> <span aria-hidden="true">›</span> <a href=${`#/cluster/${cluster}`}>Cluster</a>`}
      <${Siblings} pair=${pair} cluster=${cluster} params=${params} isListed=${isListed} /></div>
    <h1 class="names"><${Id} id=${a.id} /> <span class="quiet">and</span> <${Id} id=${b.id} /></h1>
    <${Verdict} pair=${pair} info=${info} />
    ${passages && html`<${Passages} pair=${pair} passages=${passages} chosen=${chosen && chosen.row} choose=${choose} />`}
    ${hasTexts ? html`<${Texts} pair=${pair} isShort=${isShort} setShort=${setShort} spans=${pair.hunks ? [] : spans} chosen=${chosen} />`
      : html`<div class="sides">${[a, b].map((one) => html`<${Side} one=${one} />`)}</div><${NoText} info=${info} />`}
    <${Columns} a=${a} b=${b} info=${info} />`;
}

/** Links to the pairs before and behind this one: of the cluster, or of the list. */
function Siblings({ pair, cluster, params, isListed }) {
  const { source } = useShared();
  const at = Number(params.get("at"));
  const state = useLoaded(async () => {
    if (isListed) {
      if (!params.has("at")) return [];
      const sort = params.get("sort") || "similarity", search = params.get("search") || "";
      const { rows } = await source.listed({ offset: Math.max(0, at - 1), limit: at ? 3 : 2, sort, search });
      const links = rows.map((row, number) => linkOfPair(row, Math.max(0, at - 1) + number, sort, search));
      return at ? [links[0], links[2]] : [null, links[1]];
    }
    const { documents } = await source.cluster(cluster);
    const keys = documents.slice(1).map((one) => one.key);
    const number = keys.indexOf(pair.a.key === cluster ? pair.b.key : pair.a.key);
    if (number < 0 || (pair.a.key !== cluster && pair.b.key !== cluster)) return [];
    return [keys[number - 1], keys[number + 1]].map((key) => (key === undefined ? null : `#/pair/${cluster}/${key}`));
  }, [pair]);
  const [before, behind] = state.value || [];
  return html`<span class="siblings">${before && html`<a href=${before} rel="prev">‹ previous pair</a>`} ${behind && html`<a href=${behind} rel="next">next pair ›</a>`}</span>`;
}

const linkOfPair = (row, at, sort, search) => `#/pair/${row.a}/${row.b}?${new URLSearchParams({ at, sort, search })}`;

function Verdict({ pair, info }) {
  const { a, b, similarity } = pair;
  // With both sizes, the similarity gives the number of shared shingles.
  const shared = info.measure === "jaccard" && similarity !== null && a.shingles !== null && b.shingles !== null
    ? Math.round((similarity * (a.shingles + b.shingles)) / (1 + similarity)) : null;
  return html`<dl class="figures">
    <${Figure} name=${info.asks_containment ? "contained" : "similarity"} value=${similar(similarity)} note=${similarity === null ? "not compared in this run" : similarity < info.threshold ? `below the threshold ${info.threshold}` : `at or above the threshold ${info.threshold}`} />
    ${shared !== null && html`<${Figure} name="left contained in right" value=${a.shingles ? percent(shared / a.shingles) : "–"} note=${`${count(shared)} of ${plural(a.shingles, "shingle")}`} />
    <${Figure} name="right contained in left" value=${b.shingles ? percent(shared / b.shingles) : "–"} note=${`${count(shared)} of ${plural(b.shingles, "shingle")}`} />`}
  </dl>`;
}

function Side({ one }) {
  const { source } = useShared();
  const isListed = source.info.kind === "pairs";
  return html`<section class="side" aria-label=${labelOf(one.id)}>
    <header><strong><${Id} id=${one.id} /></strong> ${!isListed && html`<${Status} one=${one} />`}
      <${WholeId} id=${one.id} />
      <p class="caption"><${Visible} text=${placeOf(one)} />${one.bytes !== null && html`, ${bytes(one.bytes)}`}</p>
      ${!isListed && html`<${MarkButton} one=${one} isSmall />`}</header></section>`;
}

/** Rows of two texts that stand side by side: [{a: [start, end], b, isEqual, runs}], each cut where a line of both ends. */
function alignRows(textA, textB, isUnknown) {
  const rows = [];
  let runs = [];
  const close = () => {
    if (runs.length) rows.push({ runs, isEqual: runs.every((run) => run.isEqual) });
    runs = [];
  };
  const passages = differ(textA, textB);
  const last = passages[passages.length - 1];
  passages.forEach((passage) => {
    const { isEqual, cuts } = passage;
    if (!isEqual) {
      runs.push({ isEqual, a: passage.a, b: passage.b, isUnknown: passage === last ? isUnknown : null, words: passage.words });
      return;
    }
    let [startA, startB] = [passage.a[0], passage.b[0]];
    for (const [endA, endB] of [...cuts, null].map((cut) => cut || [passage.a[1], passage.b[1]])) {
      runs.push({ isEqual, a: [startA, endA], b: [startB, endB] });
      if (endA < passage.a[1]) close();
      [startA, startB] = [endA, endB];
    }
  });
  close();
  return rows;
}

/** What the page shows of two texts: rows, and what is left out between them; differences are numbered. */
function layOut(pair) {
  const view = chooseRows(pair);
  let numChanges = 0;
  for (const { rows } of view.blocks) {
    for (const run of rows.flatMap((row) => row.runs)) {
      const isTinted = (side) => run[side][0] < run[side][1] && !run.isUnknown?.[side];
      if (!run.isEqual && (isTinted("a") || isTinted("b"))) run.change = numChanges++;
    }
  }
  return { ...view, numChanges };
}

function chooseRows(pair) {
  const { a, b, hunks } = pair;
  if (!hunks) {
    // Behind the cut of one text nobody knows what the other has on its own.
    const isUnknown = { a: !b.is_whole, b: !a.is_whole };
    return { blocks: [{ texts: [a.text, b.text], rows: alignRows(a.text, b.text, isUnknown) }], skipped: 0, left: [a.behind || 0, b.behind || 0], isAligned: a.is_whole && b.is_whole };
  }
  const blocks = hunks.parts.map(([skipped, textA, textB]) => ({ skipped, texts: [textA, textB], rows: alignRows(textA, textB, null) }));
  return { blocks, skipped: hunks.skipped, left: hunks.left_out, isAligned: true };
}

/** What is not shown of two texts, in words. */
function leftOut({ left: [left, right], isAligned }) {
  if (!left && !right) return null;
  const where = `${plural(left, "word")} on the left and ${plural(right, "word")} on the right`;
  return isAligned ? `Left out: ${where} that differ, too many for this page.` : `Only the beginnings of these texts are compared here: ${where} are left out.`;
}

function Texts({ pair, isShort, setShort, spans, chosen }) {
  const { a, b } = pair;
  const root = useRef(null), pane = useRef(null);
  const [at, setAt] = useState(-1);
  const view = useMemo(() => layOut(pair), [pair]);
  const numChanges = view.numChanges;
  useEffect(() => setAt(-1), [pair]);
  useEffect(() => {
    root.current.querySelectorAll(".is-found").forEach((element) => element.classList.remove("is-found"));
    if (!chosen) return;
    for (const side of ["a", "b"]) {
      const [start, end] = chosen.row[side];
      const isChosen = (element) => start <= Number(element.dataset.start) && Number(element.dataset.start) < end;
      const found = [...pane.current.querySelectorAll(`[data-side="${side}"] [data-start]`)].filter(isChosen);
      found.forEach((element) => element.classList.add("is-found"));
      if (side === chosen.side && found.length) scrollTo(found[0]);
    }
    root.current.scrollIntoView({ block: "start" });
  }, [chosen]);
  const scrollTo = (element) => { pane.current.scrollTop += element.getBoundingClientRect().top - pane.current.getBoundingClientRect().top - 60; };
  const step = (by) => {
    const next = Math.max(0, Math.min(numChanges - 1, at < 0 && by < 0 ? numChanges - 1 : at + by));
    pane.current.querySelectorAll(".is-current").forEach((element) => element.classList.remove("is-current"));
    const found = pane.current.querySelectorAll(`[data-change="${next}"]`);
    found.forEach((element) => element.classList.add("is-current"));
    if (found.length) scrollTo(found[0]);
    setAt(next);
  };
  const note = leftOut(view);
  const face = faceOf(a.text);
  return html`<div ref=${root} class="evidence">
    <div class="sides"><${Side} one=${a} /><${Side} one=${b} /></div>
    <div class="actions">
      ${numChanges > 0 && html`<span class="steps"><button id="previous-change" onClick=${() => step(-1)} title="p">‹ previous</button>
        <span class="figure" aria-live="polite">${at < 0 ? plural(numChanges, "difference") : `difference ${count(at + 1)} of ${count(numChanges)}`}</span>
        <button id="next-change" onClick=${() => step(1)} title="n">next ›</button></span>`}
      ${!pair.hunks && html`<label class="switch"><input type="checkbox" checked=${isShort} onChange=${(event) => setShort(event.currentTarget.checked)} /> Only differences</label>`}
      <span class="legend"><span class="sample gone">only left</span> <span class="sample new">only right</span>${spans.length > 0 && html` <span class="sample in-passage">shared passages</span>`}</span></div>
    ${note && html`<p class="caption cut-note"><strong>${note}</strong></p>`}
    ${numChanges === 0 && !note && html`<p class="caption">The texts are equal, word for word.</p>`}
    <div class=${`aligned text ${face}`} ref=${pane} tabindex="0" role="group" aria-label="both texts, side by side">
      ${view.blocks.map((block, number) => html`${block.skipped > 0 && html`<p class="left-out">… ${plural(block.skipped, "equal word")} not stored here …</p>`}
        <${Rows} key=${number} block=${block} isShort=${isShort && !pair.hunks} spans=${spans} />`)}
      ${view.skipped > 0 && html`<p class="left-out">… ${plural(view.skipped, "equal word")} not stored here …</p>`}
    </div>
    ${!pair.hunks && html`<div class="two cuts">${[a, b].map((one) => html`<div><${Cut} one=${one} /></div>`)}</div>`}</div>`;
}

/** The rows of aligned texts; with `isShort`, equal ones away from a difference are folded. */
function Rows({ block, isShort, spans }) {
  const { rows, texts } = block;
  const [opened, setOpened] = useState(() => new Set());
  useEffect(() => setOpened(new Set()), [block]);
  const isNear = useMemo(() => {
    const near = rows.map((row) => !row.isEqual);
    rows.forEach((row, at) => !row.isEqual && [...Array(2 * ROWS_AROUND + 1).keys()].forEach((by) => { near[at + by - ROWS_AROUND] = true; }));
    return near;
  }, [rows]);
  const covers = useMemo(() => ["a", "b"].map((side) => spans.map((span) => span[side])), [spans]);
  const shown = [];
  for (let at = 0; at < rows.length;) {
    let end = at;
    while (isShort && end < rows.length && !isNear[end] && !opened.has(at)) end++;
    if (end > at) {
      const first = at, words = rows.slice(at, end).reduce((sum, row) => sum + row.runs.reduce((own, run) => own + countUnits(texts[0].slice(...run.a)), 0), 0);
      shown.push(html`<button key=${`f${first}`} class="left-out fold" onClick=${() => setOpened((before) => new Set([...before, ...Array.from({ length: end - first }, (_, number) => first + number)]))}>… ${plural(words, "equal word")} …</button>`);
      at = end;
      continue;
    }
    const row = rows[at];
    shown.push(html`<div key=${at} class=${`pair-row${row.isEqual ? "" : " changed"}`}>
      ${["a", "b"].map((side, number) => html`<div data-side=${side} class="half"><bdi>${row.runs.map((run) => html`<${Run} run=${run} side=${side} text=${texts[number]} covers=${covers[number]} />`)}</bdi></div>`)}</div>`);
    at++;
  }
  return shown;
}

const countUnits = (text) => cutUnits(text).filter((unit) => unit[0].trim()).length;

/** A stretch of one side, cut where passages begin and end. */
function Run({ run, side, text, covers }) {
  const [start, end] = run[side];
  if (start === end) return null;
  const isEqual = run.isEqual || run.isUnknown?.[side] === true;
  const near = covers.filter(([from, to]) => from < end && to > start);
  const edges = [...new Set([start, end, ...near.flat().filter((edge) => edge > start && edge < end)])].sort((x, y) => x - y);
  const isCovered = coverage(edges, near.map(([from, to]) => [Math.max(start, from), Math.min(end, to)]));
  return edges.slice(0, -1).map((edge, at) => {
    const inner = html`<${Visible} text=${text.slice(edge, edges[at + 1])} />`;
    const marked = isEqual ? inner : side === "a" ? html`<del class="gone" data-change=${run.change}>${inner}</del>` : html`<ins class="new" data-change=${run.change}>${inner}</ins>`;
    return isCovered[at] ? html`<span class="in-passage" data-start=${edge}>${marked}</span>` : marked;
  });
}

function Columns({ a, b, info }) {
  if (!a.columns || !b.columns) return info.columns_note ? html`<p class="caption">${info.columns_note}</p>` : null;
  const names = [...new Set([...Object.keys(a.columns), ...Object.keys(b.columns)])];
  if (!names.length) return null;
  return html`<section class="card" aria-labelledby="columns"><h2 id="columns">Other columns</h2>
    <div class="scroll" tabindex="0" role="group" aria-label="other columns"><table><thead><tr><th>column</th><th>left</th><th>right</th></tr></thead>
      <tbody>${names.map((name) => html`<tr class=${a.columns[name] === b.columns[name] ? "" : "differs"}><th scope="row"><${Visible} text=${name} /></th>
        ${[a, b].map((one) => html`<td><bdi><${Visible} text=${one.columns[name] ?? "–"} /></bdi></td>`)}</tr>`)}</tbody></table></div></section>`;
}

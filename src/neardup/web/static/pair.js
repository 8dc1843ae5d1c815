// Two documents side by side: what differs, and which shingles they share.

const LONG_EQUAL = 60;
const CONTEXT = 120;

function PairView({ a, b }) {
  const { source } = useShared();
  const state = useLoaded(() => source.pair(a, b), [a, b, source.info.texts.state]);
  return html`<${Loaded} state=${state}>${(pair) => html`<${Pair} pair=${pair} info=${source.info} />`}<//>`;
}

function Pair({ pair, info }) {
  const { a, b } = pair;
  const isListed = info.kind === "pairs";
  const hasTexts = a.text !== null && b.text !== null;
  const [isShort, setShort] = useState(hasTexts && a.text.length + b.text.length > 8000);
  const passages = useMemo(() => readPassages(pair), [pair]);
  // A new object for every click, so that the same passage can be chosen again.
  const [chosen, setChosen] = useState(null);
  useEffect(() => setChosen(null), [pair]);
  const choose = (row) => {
    // What differs alone would hide most of a passage.
    setShort(false);
    setChosen({ row });
  };
  const spans = useMemo(() => (passages ? passages.rows.filter((row) => row.a && row.b) : []), [passages]);
  const cluster = a.kept ?? (b.kept === a.key ? a.key : b.kept ?? a.key);
  return html`<p class="crumbs">${isListed ? html`<a href="#/pairs">Pairs</a>` : html`<a href="#/clusters">Clusters</a> <span aria-hidden="true">›</span> <a href=${`#/cluster/${cluster}`}>Cluster</a>`}</p>
    <h1>Pair</h1>
    <${Verdict} pair=${pair} info=${info} />
    ${passages && html`<${Passages} pair=${pair} passages=${passages} chosen=${chosen && chosen.row} choose=${choose} />`}
    ${hasTexts && html`<div class="actions">
      <label class="switch"><input type="checkbox" checked=${isShort} onChange=${(event) => setShort(event.currentTarget.checked)} /> Only differences</label>
      <span class="legend"><span class="sample shared">shared shingles</span> <span class="sample gone">only left</span> <span class="sample new">only right</span>${spans.length > 0 && html` <span class="sample in-passage">shared passages</span>`}</span></div>`}
    ${hasTexts ? html`<${Texts} a=${a} b=${b} info=${info} isShort=${isShort} spans=${spans} chosen=${chosen} />`
      : html`<div class="sides">${[a, b].map((one) => html`<${Side} one=${one} />`)}</div><${NoText} info=${info} />`}
    <${Columns} a=${a} b=${b} info=${info} />`;
}

function Verdict({ pair, info }) {
  const { a, b, similarity } = pair;
  // With both sizes, the similarity gives the number of shared shingles.
  const shared = info.measure === "jaccard" && similarity !== null && a.shingles !== null && b.shingles !== null
    ? Math.round((similarity * (a.shingles + b.shingles)) / (1 + similarity)) : null;
  return html`<dl class="figures">
    <${Figure} name="similarity" value=${similar(similarity)} note=${similarity === null ? "not compared in this run" : similarity < info.threshold ? `below the threshold ${info.threshold}` : `at or above the threshold ${info.threshold}`} />
    ${shared !== null && html`<${Figure} name="left contained in right" value=${a.shingles ? percent(shared / a.shingles) : "–"} note=${`${count(shared)} of ${plural(a.shingles, "shingle")}`} />
    <${Figure} name="right contained in left" value=${b.shingles ? percent(shared / b.shingles) : "–"} note=${`${count(shared)} of ${plural(b.shingles, "shingle")}`} />`}
  </dl>`;
}

function Side({ one, children }) {
  const { source } = useShared();
  const isListed = source.info.kind === "pairs";
  return html`<section class="side" aria-label=${labelOf(one.id)}>
    <header><strong><${Id} id=${one.id} /></strong> ${!isListed && html`<${Status} one=${one} />`}
      <${WholeId} id=${one.id} />
      <p class="caption"><${Visible} text=${placeOf(one)} />${one.bytes !== null && html`, ${bytes(one.bytes)}`}</p>
      ${!isListed && html`<${MarkButton} one=${one} isSmall />`}</header>${children}</section>`;
}

/** Stretches of one side with equal style, in order: [{start, end, isEqual, link, isInPassage}]. */
function styleSide(length, passages, stretches, spans, side) {
  const edges = new Set([0, length]);
  passages.forEach((passage) => passage[side].forEach((edge) => edges.add(edge)));
  stretches.forEach((stretch) => edges.add(stretch.start).add(stretch.end));
  spans.forEach((span) => span[side].forEach((edge) => edges.add(edge)));
  const places = [...edges].sort((x, y) => x - y);
  const isCovered = coverage(places, spans.map((span) => span[side]));
  const runs = [];
  let passage = 0, stretch = 0;
  for (let at = 0; at + 1 < places.length; at++) {
    const [start, end] = [places[at], places[at + 1]];
    while (passage < passages.length && passages[passage][side][1] <= start) passage++;
    while (stretch < stretches.length && stretches[stretch].end <= start) stretch++;
    const isIn = stretch < stretches.length && stretches[stretch].start <= start;
    runs.push({ start, end, passage, isEqual: !passages[passage] || passages[passage].isEqual || passages[passage].isUnknown?.[side] === true, link: isIn ? stretch : null, isInPassage: isCovered[at] });
  }
  return runs;
}

/** Scroll the text around an element, not the page, until the element is near its top. */
function scrollTextTo(element) {
  const pane = element.closest(".text");
  pane.scrollTop += element.getBoundingClientRect().top - pane.getBoundingClientRect().top - 40;
}

function Texts({ a, b, info, isShort, spans, chosen }) {
  const root = useRef(null);
  const view = useMemo(() => {
    const passages = differ(a.text, b.text);
    // Behind the cut of one text nobody knows what the other has on its own.
    const last = passages[passages.length - 1];
    if (last && !last.isEqual) last.isUnknown = { a: !b.is_whole, b: !a.is_whole };
    const shinglesA = findShingles(a.text, info.shingles), shinglesB = findShingles(b.text, info.shingles);
    const keysA = new Set(shinglesA.map((one) => one.key)), keysB = new Set(shinglesB.map((one) => one.key));
    const stretchesA = sharedStretches(shinglesA, keysB), stretchesB = sharedStretches(shinglesB, keysA);
    const places = (shingles, stretches) => {
      const found = new Map();
      let at = 0;
      for (const { key, start } of shingles) {
        while (at < stretches.length && stretches[at].end <= start) at++;
        if (!found.has(key)) found.set(key, at);
      }
      return found;
    };
    const inA = places(shinglesA, stretchesA), inB = places(shinglesB, stretchesB);
    return {
      passages,
      a: { runs: styleSide(a.text.length, passages, stretchesA, spans, "a"), to: stretchesA.map((one) => inB.get(one.key)) },
      b: { runs: styleSide(b.text.length, passages, stretchesB, spans, "b"), to: stretchesB.map((one) => inA.get(one.key)) },
    };
  }, [a, b, spans]);
  useEffect(() => {
    root.current.querySelectorAll(".is-found").forEach((element) => element.classList.remove("is-found"));
    if (!chosen) return;
    for (const side of ["a", "b"]) {
      const [start, end] = chosen.row[side];
      const isChosen = (element) => start <= Number(element.dataset.start) && Number(element.dataset.start) < end;
      const found = [...root.current.querySelectorAll(`[data-side="${side}"] [data-start]`)].filter(isChosen);
      found.forEach((element) => element.classList.add("is-found"));
      if (found.length) scrollTextTo(found[0]);
    }
    root.current.scrollIntoView({ block: "start" });
  }, [chosen]);
  const follow = (side, link) => {
    const other = side === "a" ? "b" : "a", target = view[side].to[link];
    const found = root.current.querySelector(`[data-side="${other}"] [data-link="${target}"]`);
    if (!found) return;
    scrollTextTo(found);
    root.current.querySelectorAll(".is-found").forEach((element) => element.classList.remove("is-found"));
    root.current.querySelectorAll(`[data-side="${other}"] [data-link="${target}"]`).forEach((element) => element.classList.add("is-found"));
  };
  return html`<div class="sides" ref=${root}>
    <${Side} one=${a}><${Pane} side="a" one=${a} view=${view} isShort=${isShort} follow=${follow} /><${Cut} one=${a} /><//>
    <${Side} one=${b}><${Pane} side="b" one=${b} view=${view} isShort=${isShort} follow=${follow} /><${Cut} one=${b} /><//>
  </div>`;
}

function Pane({ side, one, view, isShort, follow }) {
  const { runs } = view[side];
  const shown = [];
  let lastHidden = -1;
  runs.forEach((run, at) => {
    const passage = view.passages[run.passage];
    let text = one.text.slice(run.start, run.end);
    if (isShort && passage && passage.isEqual && passage.words > LONG_EQUAL) {
      const [start, end] = passage[side];
      const isFirst = run.passage === 0, isLast = run.passage === view.passages.length - 1;
      const from = isFirst ? start : Math.min(end, start + CONTEXT), to = isLast ? end : Math.max(from, end - CONTEXT);
      const before = one.text.slice(run.start, Math.max(run.start, Math.min(run.end, from)));
      const after = one.text.slice(Math.min(run.end, Math.max(run.start, to)), run.end);
      if (before) shown.push(html`<${Run} key=${`${at}b`} run=${run} side=${side} text=${before} follow=${follow} />`);
      if (lastHidden !== run.passage && run.end > from) {
        shown.push(html`<span key=${`${at}h`} class="left-out">… ${count(passage.words)} equal words …</span>`);
        lastHidden = run.passage;
      }
      if (after) shown.push(html`<${Run} key=${`${at}a`} run=${run} side=${side} text=${after} follow=${follow} />`);
      return;
    }
    shown.push(html`<${Run} key=${at} run=${run} side=${side} text=${text} follow=${follow} />`);
  });
  return html`<div class="text" data-side=${side} tabindex="0" role="group" aria-label=${`text of ${labelOf(one.id)}`}><bdi>${shown}</bdi></div>`;
}

function Run({ run, side, text, follow }) {
  const name = run.isEqual ? "" : side === "a" ? "gone" : "new";
  const inner = html`<${Visible} text=${text} />`;
  const marked = run.isEqual ? inner : side === "a" ? html`<del class=${name}>${inner}</del>` : html`<ins class=${name}>${inner}</ins>`;
  const start = run.isInPassage ? run.start : null;
  if (run.link === null) return html`<span class=${run.isInPassage ? "in-passage" : null} data-start=${start}>${marked}</span>`;
  return html`<span class=${run.isInPassage ? "shared in-passage" : "shared"} data-start=${start} data-link=${run.link} onClick=${() => follow(side, run.link)}>${marked}</span>`;
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

// The first view: the promise with this run's numbers, and where to look.

function Overview() {
  const { source } = useShared();
  const { info } = source;
  if (info.kind === "index") return html`<${IndexOverview} info=${info} />`;
  if (info.kind === "pairs") return html`<${PairsOverview} info=${info} />`;
  return html`
    ${info.rejected.total > 0 && html`<${Rejected} rejected=${info.rejected} documents=${info.counts.documents} />`}
    <${Promise_} info=${info} />
    <${Warnings} warnings=${info.warnings} />
    <${Threshold} info=${info} />
    <div class="two">
      <section class="card" aria-labelledby="sizes"><h2 id="sizes">Cluster sizes</h2>
        <p class="caption">Number of clusters by number of documents, both logarithmic.</p>
        ${info.sizes.length ? html`<${Sizes} sizes=${info.sizes} />` : html`<${Empty}>Nothing was removed, so there are no clusters.<//>`}</section>
      <section class="card" aria-labelledby="curve"><h2 id="curve">Chance of being found</h2>
        <p class="caption">${info.recall.is_exact ? "The exact method finds every pair at or above the threshold." : `By similarity, with ${info.method}.`} Bars: similarities of removed documents.</p>
        <${SCurve} curve=${info.curve} bins=${info.histogram.removed} threshold=${info.threshold} /></section>
    </div>
    <${Largest} info=${info} />
    <${Facts} info=${info} />`;
}

function Promise_({ info }) {
  const { counts, recall, bytes: size } = info;
  const share = counts.documents ? counts.removed / counts.documents : 0;
  return html`<section class="promise" aria-labelledby="promise">
    <h1 id="promise">${count(counts.removed)} of ${plural(counts.documents, "document")} removed</h1>
    <p class="lead">${info.finding}
      ${info.cluster === "leader"
        ? html` Every removed document is at least ${info.threshold} similar to the kept document that represents it.`
        : html` Removed documents are connected to the kept one by a chain of similar documents; ${count(counts.below)} of them are less than ${info.threshold} similar to it.`}</p>
    <${Exceptions} info=${info} />
    <dl class="figures">
      <${Figure} name="kept" value=${count(counts.kept)} />
      <${Figure} name="removed" value=${count(counts.removed)} note=${`${percent(share)} of the documents, ${plural(counts.exact_duplicates, "exact copy", "exact copies")}`} />
      <${Figure} name="rejected" value=${count(counts.rejected)} />
      <${Figure} name="clusters" value=${count(counts.clusters)} />
      <${Figure} name="recall promised" value=${floorTo(recall.is_exact ? 1 : recall.promised, 4)} note=${`at similarity ${info.threshold}`} />
      <${Figure} name="recall measured" value=${recall.audit && recall.audit.recall !== null ? floorTo(recall.audit.recall, 4) : "–"}
        note=${recall.audit && recall.audit.recall !== null ? `${floorTo(recall.audit.low, 4)} to ${floorTo(recall.audit.high, 4)}, ${plural(recall.audit.pairs, "pair")}` : "not measured; see neardup audit"} />
    </dl>
    ${size.removed !== null && html`<${Where} read=${size.read} removed=${size.removed} />`}
  </section>`;
}

const Figure = ({ name, value, note }) => html`<div><dt>${name}</dt><dd>${value}</dd>${note && html`<dd class="note">${note}</dd>`}</div>`;

function Exceptions({ info }) {
  const made = info.decisions;
  if (!made || !(made.kept + made.removed)) return null;
  return html`<p class="caption">Exceptions by decision: ${count(made.kept)} kept although similar to a kept document, ${count(made.removed)} removed although not similar enough.</p>`;
}

function Where({ read, removed }) {
  const share = read ? removed / read : 0;
  return html`<div class="where">
    <div class="split" role="img" aria-label=${`${bytes(read - removed)} of text kept, ${bytes(removed)} removed`}>
      <span class="split-kept" style=${{ width: `${100 * (1 - share)}%` }}></span>
      <span class="split-removed" style=${{ width: `${100 * share}%` }}></span></div>
    <p class="caption"><span class="key kept"></span>${bytes(read - removed)} of text kept <span class="key removed"></span>${bytes(removed)} removed (${percent(share)})</p>
  </div>`;
}

function Rejected({ rejected, documents }) {
  return html`<section class="card warn" aria-labelledby="rejected">
    <h2 id="rejected">${plural(rejected.total, "row")} of ${count(documents)} rejected</h2>
    <ul class="plain">${rejected.reasons.map(([reason, times]) => html`<li><span class="figure">${count(times)}</span> <${Visible} text=${reason} /></li>`)}</ul>
    <details><summary>${rejected.total > rejected.rows.length ? `The first ${rejected.rows.length} rows` : "All rows"}</summary>
      <div class="scroll" tabindex="0" role="group" aria-label="rejected rows"><table><thead><tr><th>file</th><th class="number">row</th><th>reason</th></tr></thead>
        <tbody>${rejected.rows.map((row) => html`<tr><td><${Visible} text=${row.file || ""} /></td><td class="number">${row.row}</td><td><${Visible} text=${row.reason} /></td></tr>`)}</tbody></table></div>
    </details></section>`;
}

const Warnings = ({ warnings }) => warnings.length > 0 && html`<section class="card warn" aria-label="warnings">
  <ul class="plain">${warnings.map((text) => html`<li><${Visible} text=${text} /></li>`)}</ul></section>`;

/** The histogram with the slider. */
function Threshold({ info }) {
  const { steps, hint } = info.slider;
  const [at, setAt] = useState(0);
  const hasPairs = info.histogram.pairs !== null;
  const [what, setWhat] = useState("removed");
  const chosen = steps[at];
  const threshold = chosen ? chosen.threshold : info.threshold;
  const bins = info.histogram[what] || info.histogram.removed;
  const isEmpty = !bins.some((value) => value > 0);
  const from = Math.max(0, Math.min(info.threshold, bins.findIndex((value) => value > 0) / 100 || 0) - 0.05);
  return html`<section class="card" aria-labelledby="similarities">
    <div class="head"><h2 id="similarities">Similarities</h2>
      ${hasPairs && html`<div class="choice" role="group" aria-label="what the histogram shows">
        <button aria-pressed=${what === "removed"} onClick=${() => setWhat("removed")}>removals</button>
        <button aria-pressed=${what === "pairs"} onClick=${() => setWhat("pairs")}>pairs</button></div>`}</div>
    ${isEmpty ? html`<${Empty}>Nothing was removed.<//>` : html`<${Histogram} bins=${bins} threshold=${threshold} from=${from} what=${what === "pairs" ? "all found pairs" : "the removals"} />`}
    ${steps.length > 0
      ? html`<div class="slider"><label for="threshold">Threshold</label>
          <input id="threshold" type="range" min="0" max=${steps.length - 1} step="1" value=${at}
            aria-valuetext=${`${threshold.toFixed(2)}: ${count(chosen.removed)} removed`}
            onInput=${(event) => setAt(Number(event.currentTarget.value))} />
          <output for="threshold">${threshold.toFixed(2)}</output></div>
        <p class="caption" id="at-threshold" aria-live="polite">At ${threshold.toFixed(2)}: <strong>${count(chosen.removed)}</strong> removed, <strong>${count(chosen.kept)}</strong> kept, ${plural(chosen.clusters, "cluster")}, ${plural(chosen.pairs, "pair")}${at > 0 ? html`; ${count(steps[0].removed - chosen.removed)} fewer removals than in this run` : ""}.</p>`
      : html`<p class="caption"><${Prose} text=${hint} /></p>`}
  </section>`;
}

function Largest({ info }) {
  if (!info.largest.length) return null;
  return html`<section class="card" aria-labelledby="largest"><h2 id="largest">Largest clusters</h2>
    <div class="scroll" tabindex="0" role="group" aria-label="largest clusters"><table class="roomy"><thead><tr><th class="number">documents</th><th>kept document</th><th>weakest member</th><th>similarity</th></tr></thead>
      <tbody>${info.largest.map((row) => html`<tr>
        <td class="number">${count(row.size)}</td>
        <td><a data-row href=${`#/cluster/${row.key}`}><${Id} id=${row.id} /></a></td>
        <td><a href=${`#/pair/${row.key}/${row.weakest_key}`}><${Id} id=${row.weakest_id} /></a></td>
        <td><${Similarity} value=${row.weakest} threshold=${info.threshold} /></td></tr>`)}</tbody></table></div></section>`;
}

function Facts({ info }) {
  return html`<section class="card" aria-labelledby="facts"><h2 id="facts">This run</h2>
    <dl class="facts">
      <dt>method</dt><dd>${info.method}${info.reason ? html` <span class="note">${info.reason.replace(`${info.method}: `, "")}</span>` : ""}</dd>
      ${info.settings.map(([name, value]) => html`<dt>${name}</dt><dd><${Visible} text=${value} /></dd>`)}
      <dt>text read</dt><dd>${bytes(info.bytes.read)} in ${info.seconds.toFixed(2)} s</dd>
      ${info.files.length > 0 && html`<dt>${plural(info.num_files, "file")}</dt><dd><ul class="plain">${info.files.map((file) => html`<li><${Visible} text=${file.file} /> <span class="note">${plural(file.rows, "row")}${file.ahead ? ", compared against" : ""}</span></li>`)}
        ${info.num_files > info.files.length && html`<li class="note">and ${count(info.num_files - info.files.length)} more</li>`}</ul></dd>`}
      <dt>neardup</dt><dd>${info.version}</dd>
    </dl></section>`;
}

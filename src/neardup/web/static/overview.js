// The first view: what the data is like, whether it is right, and where to look.

function Overview({ params }) {
  const { source } = useShared();
  const { info } = source;
  if (info.kind === "index") return html`<${IndexOverview} info=${info} />`;
  if (info.kind === "pairs") return html`<${PairsOverview} info=${info} />`;
  const hasRemoved = info.counts.removed > 0;
  return html`
    ${info.rejected.total > 0 && html`<${Rejected} rejected=${info.rejected} documents=${info.counts.documents} />`}
    <${Headline} info=${info} />
    <${Warnings} warnings=${info.warnings} />
    ${hasRemoved && html`<${SourceMatrix} info=${info} params=${params} />
    <${Similarities} info=${info} />
    <${Threshold} info=${info} params=${params} />
    <div class="two">
      <section class="card" aria-labelledby="sizes"><div class="head"><h2 id="sizes">Cluster sizes</h2>
        <${CsvButton} name="cluster-sizes" head=${["documents", "clusters"]} rows=${() => info.sizes} /></div>
        <${Sizes} sizes=${info.sizes} /></section>
      <${Chance} info=${info} />
    </div>
    <${Largest} info=${info} />`}
    ${!hasRemoved && html`<${Chance} info=${info} />`}
    <${Facts} info=${info} />`;
}

/** What a similarity of this run is called, and what it is a similarity to. */
const wordsOf = (info) => (info.asks_containment
  ? { identical: "contained whole", edited: "contained in part" }
  : { identical: "identical", edited: "edited" });

function Headline({ info }) {
  const { counts } = info;
  const share = counts.documents ? counts.removed / counts.documents : 0;
  const what = info.asks_containment ? "contain another" : "are near-duplicates";
  return html`<section class="promise" aria-labelledby="promise">
    <h1 id="promise">${counts.removed ? `${count(counts.removed)} of ${plural(counts.documents, "document")} ${what} (${percent(share, share < 0.095 ? 1 : 0)})` : `Nothing was removed from ${plural(counts.documents, "document")}`}</h1>
    <p class="lead">${info.sources.length > 0 && html`<span id="whence"><${Visible} text=${info.sources[0].sentence} /></span> `}${info.finding} ${promiseOf(info)}</p>
    <${Causes} info=${info} />
    <${Exceptions} info=${info} />
    <${Split} info=${info} />
    <${Measured} info=${info} />
  </section>`;
}

/** What holds for every removed document. */
function promiseOf({ counts, cluster, threshold, asks_containment: isContainment }) {
  if (!counts.removed) return "";
  if (isContainment) return `Every removed document contains at least ${threshold} of the shingles of the document for which it was removed.`;
  if (cluster === "leader") return `Every removed document is at least ${threshold} similar to the kept document that represents it.`;
  return `Removed documents are connected to the kept one by a chain of similar documents; ${count(counts.below)} of them are less than ${threshold} similar to it.`;
}

/** How many went because of reference documents, and how many because of others of the input. */
function Causes({ info }) {
  const { counts } = info;
  if (!info.has_references || !counts.removed) return null;
  const within = counts.removed - counts.removed_against;
  return html`<p class="causes">${count(counts.removed_against)} because of a reference document (<code>--against</code>), ${info.only_against ? "and the input was not compared with itself" : `${count(within)} because of another document of the input`}.</p>`;
}

function Exceptions({ info }) {
  const made = info.decisions;
  if (!made || !(made.kept + made.removed)) return null;
  return html`<p class="caption">Exceptions by decision: ${count(made.kept)} kept although similar to a kept document, ${count(made.removed)} removed although not similar enough.</p>`;
}

/** All documents as one bar: kept, identical, edited, rejected. */
function Split({ info }) {
  const { counts } = info, names = wordsOf(info);
  const parts = [
    ["kept", counts.kept, "kept"],
    ["identical", counts.identical, names.identical],
    ["edited", counts.removed - counts.identical, names.edited],
    ["rejected", counts.rejected, "rejected"],
  ].filter(([, number]) => number > 0);
  return html`<div class="where">
    <div class="split" role="img" aria-label=${parts.map(([, number, name]) => `${count(number)} ${name}`).join(", ")}>
      ${parts.map(([kind, number]) => html`<span class=${`split-part ${kind}`} style=${{ flexGrow: number }}></span>`)}</div>
    <p class="keys">${parts.map(([kind, number, name]) => html`<span><span class=${`key ${kind}`}></span>${name} <strong>${count(number)}</strong></span> `)}</p></div>`;
}

function Measured({ info }) {
  const { recall, bytes: size, counts } = info;
  const parts = [];
  if (size.removed !== null && counts.removed) parts.push(`Removed text: ${bytes(size.removed)} of ${bytes(size.read)}.`);
  parts.push(recall.measured
    ? `Recall measured: ${recall.measured} (95 % interval ${recall.low} to ${recall.high}, ${plural(recall.audit.pairs, "true pair")} of a sample).`
    : recall.audit ? "Recall not measurable: no sampled document has a pair." : "Recall not measured: run neardup audit.");
  return html`<p class="caption measured">${parts.join(" ")}</p>`;
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

const binRows = (bins) => bins.map((value, bin) => [(bin / 100).toFixed(2), value]).filter(([, value]) => value > 0);

/** From where on similarities are drawn. */
const lowOf = (info, bins) => {
  const first = bins.findIndex((value) => value > 0);
  return Math.min(info.threshold, first < 0 || first === 100 ? info.threshold : first / 100, 0.99);
};

function Similarities({ info }) {
  const hasPairs = info.histogram.pairs !== null;
  const [what, setWhat] = useState("removed");
  const bins = info.histogram[what];
  const names = what === "pairs" ? { identical: "of 1", edited: "below 1" } : wordsOf(info);
  return html`<section class="card" aria-labelledby="similarities">
    <div class="head"><h2 id="similarities">How similar they are</h2>
      <div class="tools">${hasPairs && html`<div class="choice" role="group" aria-label="what the histogram shows">
        <button aria-pressed=${what === "removed"} onClick=${() => setWhat("removed")}>removals</button>
        <button aria-pressed=${what === "pairs"} onClick=${() => setWhat("pairs")}>pairs</button></div>`}
        <${CsvButton} name=${`similarities-${what}`} head=${["similarity", what]} rows=${() => binRows(bins)} /></div></div>
    <p class="caption">${what === "pairs" ? "All found pairs" : "Removed documents by their similarity to the kept one"}, per hundredth. Those of similarity 1 have a bar of their own.</p>
    <${Histogram} bins=${bins} low=${lowOf(info, bins)} what=${what === "pairs" ? "found pairs" : "removed documents"} names=${names} /></section>`;
}

/** What a higher threshold would remove. */
function Threshold({ info, params }) {
  const { go } = useShared();
  const { steps, hint, more } = info.slider;
  if (!steps.length) return html`<section class="card" aria-labelledby="other"><h2 id="other">What another threshold would remove</h2>
    <p class="caption"><${Prose} text=${hint} /></p>${more && html`<p class="caption"><${Prose} text=${more} /></p>`}</section>`;
  const wanted = Number(params.get("threshold")) || info.threshold;
  const at = Math.max(0, steps.findLastIndex((step) => step.threshold <= wanted + 1e-9));
  const chosen = steps[at];
  const set = (number) => go("", { by: params.get("by"), threshold: steps[number].threshold.toFixed(2) });
  return html`<section class="card" aria-labelledby="other">
    <div class="head"><h2 id="other">What another threshold would remove</h2>
      <${CsvButton} name="thresholds" head=${["threshold", "removed", "kept", "clusters", "pairs"]} rows=${() => steps.map((step) => [step.threshold, step.removed, step.kept, step.clusters, step.pairs])} /></div>
    <${ThresholdChart} steps=${steps} at=${at} set=${set} />
    <div class="slider"><label for="threshold">Threshold</label>
      <input id="threshold" type="range" min="0" max=${steps.length - 1} step="1" value=${at}
        aria-valuetext=${`${chosen.threshold.toFixed(2)}: ${count(chosen.removed)} removed`}
        onInput=${(event) => set(Number(event.currentTarget.value))} />
      <output for="threshold">${chosen.threshold.toFixed(2)}</output></div>
    <p class="caption" id="at-threshold" aria-live="polite">At ${chosen.threshold.toFixed(2)}: <strong>${count(chosen.removed)}</strong> removed, <strong>${count(chosen.kept)}</strong> kept, ${plural(chosen.clusters, "cluster")}, ${plural(chosen.pairs, "pair")}${at > 0 ? html`; ${plural(steps[0].removed - chosen.removed, "document")} ${steps[0].removed - chosen.removed === 1 ? "comes" : "come"} back` : ""}.</p>
  </section>`;
}

function ThresholdChart({ steps, at, set }) {
  const draw = (width, height) => {
    const bottom = height - MARGIN.bottom, low = steps[0].threshold, high = Math.max(1, low + 0.01);
    const ticks = countTicks(Math.max(1, steps[0].removed)), top = ticks[ticks.length - 1];
    const x = scale(low, high, MARGIN.left, width - MARGIN.right), y = scale(0, top, bottom, MARGIN.top);
    const chosen = steps[at], isLeft = x(chosen.threshold) < width * 0.55;
    const label = `${chosen.threshold.toFixed(2)}: ${count(chosen.removed)} removed${at ? `, ${count(steps[0].removed - chosen.removed)} come back` : ""}`;
    return html`<${Axes} width=${width} height=${height} x=${x} y=${y} xTicks=${similarityTicks(low, 1, (width - 80) / 50)} yTicks=${ticks} xTitle="threshold: drag the line" yTitle="removed documents" spellX=${(value) => value.toFixed(2)} />
      <polyline class="curve removed" points=${steps.map((step) => `${x(step.threshold).toFixed(1)},${y(step.removed).toFixed(1)}`).join(" ")} />
      <line class="mark" x1=${x(chosen.threshold)} x2=${x(chosen.threshold)} y1=${MARGIN.top} y2=${bottom} />
      <circle class="handle" cx=${x(chosen.threshold)} cy=${y(chosen.removed)} r="6" />
      <text class="strong" x=${x(chosen.threshold) + (isLeft ? 11 : -11)} y=${Math.max(MARGIN.top + 10, y(chosen.removed) - 10)} text-anchor=${isLeft ? "start" : "end"}>${label}</text>`;
  };
  const move = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const place = event.currentTarget.getBoundingClientRect(), low = steps[0].threshold;
    const wanted = low + ((event.clientX - place.left - MARGIN.left) / (place.width - MARGIN.left - MARGIN.right)) * (1 - low);
    const nearest = steps.reduce((best, step, number) => (Math.abs(step.threshold - wanted) < Math.abs(steps[best].threshold - wanted) ? number : best), 0);
    if (nearest !== at) set(nearest);
  };
  const press = (event) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    move(event);
  };
  return html`<${Chart} class="drag" draw=${draw} label=${`Removed documents by threshold, from ${count(steps[0].removed)} at ${steps[0].threshold.toFixed(2)} to ${count(steps[steps.length - 1].removed)} at 1`} onPointerDown=${press} onPointerMove=${move} />`;
}

function Chance({ info }) {
  const { recall } = info;
  return html`<section class="card" aria-labelledby="curve"><h2 id="curve">Chance of being found</h2>
    <p class="caption">${recall.is_exact ? "The exact method finds every pair at or above the threshold." : `At the threshold ${recall.promised}, with ${info.method}.`}</p>
    <${SCurve} curve=${info.curve} threshold=${info.threshold} isExact=${recall.is_exact} /></section>`;
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
  const isSame = (name) => name === "method";
  return html`<section class="card" aria-labelledby="facts"><h2 id="facts">This run</h2>
    <dl class="facts">
      <dt>method</dt><dd>${info.method}${info.reason ? html` <span class="note">${info.reason.replace(`${info.method}: `, "")}</span>` : ""}</dd>
      ${info.settings.filter(([name]) => !isSame(name)).map(([name, value]) => html`<dt>${name}</dt><dd><${Visible} text=${value} /></dd>`)}
      <dt>text read</dt><dd>${bytes(info.bytes.read)} in ${info.seconds.toFixed(2)} s</dd>
      ${info.files.length > 0 && html`<dt>${plural(info.num_files, "file")}</dt><dd><ul class="plain">${info.files.map((file) => html`<li><${Visible} text=${file.file} /> <span class="note">${plural(file.rows, "row")}${file.ahead ? ", compared against" : ""}</span></li>`)}
        ${info.num_files > info.files.length && html`<li class="note">and ${count(info.num_files - info.files.length)} more</li>`}</ul></dd>`}
      <dt>neardup</dt><dd>${info.version}</dd>
    </dl></section>`;
}

const Figure = ({ name, value, note }) => html`<div><dt>${name}</dt><dd>${value}</dd>${note && html`<dd class="note">${note}</dd>`}</div>`;

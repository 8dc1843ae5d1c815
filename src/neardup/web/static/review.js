// Is it right? Removals to judge one after the other, the precision that follows, and all marks, to undo and to export.

const HALVINGS = 60;

/** The exact interval of a share of which `right` of `judged` were seen, as theory/binomial.py has it. */
function clopperPearson(right, judged, confidence) {
  const tail = (1 - confidence) / 2;
  const atLeast = (least, share) => {
    let sum = 0, ways = 1;
    for (let at = 0; at <= judged; at++) {
      if (at >= least) sum += ways * share ** at * (1 - share) ** (judged - at);
      ways = (ways * (judged - at)) / (at + 1);
    }
    return sum;
  };
  const solve = (isBelow) => {
    let low = 0, high = 1;
    for (let step = 0; step < HALVINGS; step++) {
      const middle = (low + high) / 2;
      if (isBelow(middle)) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  };
  return [right > 0 ? solve((share) => atLeast(right, share) < tail) : 0, right < judged ? solve((share) => atLeast(right + 1, share) < 1 - tail) : 1];
}

/** The precision with its 95 % interval: both strata weighted by their sizes. */
function estimate({ removals, sizes }, judged) {
  const total = sizes[0] + sizes[1], own = sizes.filter((size) => size > 0).length;
  const found = { precision: 0, low: 0, high: 0, right: 0, wrong: 0, strata: [] };
  sizes.forEach((size, stratum) => {
    const answers = removals.filter((row) => row[2] === stratum).map((row) => judged[row[1]]);
    const right = answers.filter((answer) => answer === "y").length, wrong = answers.filter((answer) => answer === "n").length;
    found.right += right;
    found.wrong += wrong;
    found.strata.push({ stratum: ["weakest tenth", "the rest"][stratum], right, judged: right + wrong, size });
    if (!size) return;
    const [low, high] = clopperPearson(right, right + wrong, 1 - 0.05 / own);
    found.low += (size / total) * low;
    found.high += (size / total) * high;
    found.precision = right + wrong && found.precision !== null ? found.precision + ((size / total) * right) / (right + wrong) : null;
  });
  return { ...found, judged: found.right + found.wrong };
}

function Queue({ review }) {
  const { source, marks } = useShared();
  const judged = marks.judged(), { removals } = review;
  const at = removals.findIndex((row) => !judged[row[1]]);
  const found = estimate(review, judged);
  const answer = async (key) => marks.judge(await source.document(removals[at][1]), key);
  return html`<section class="card" aria-labelledby="queue"><h2 id="queue">Is it right? Check ${count(removals.length)} removals</h2>
    <p class="caption">Drawn by a hash, half of them from the weakest tenth; ${plural(review.identical, "identical document")} left out. <kbd>y</kbd> the two are the same, <kbd>n</kbd> they are not, <kbd>space</kbd> skip, <kbd>u</kbd> undo.</p>
    <p id="estimate" aria-live="polite">${count(found.judged)} of ${count(removals.length)} judged: <strong>${count(found.right)} right, ${count(found.wrong)} wrong</strong>${found.precision === null ? "; judge some of both parts for an estimate" : html` → precision ${found.precision.toFixed(2)}, 95 % interval ${found.low.toFixed(2)} to ${found.high.toFixed(2)}`}.</p>
    <div class="actions">${at >= 0 && html`<button id="judge-y" class="main" onClick=${() => answer("y")}>y: the same</button>
      <button id="judge-n" onClick=${() => answer("n")}>n: not the same</button><button id="judge-skip" onClick=${() => answer("skipped")}>Skip</button>`}
      <button disabled=${!marks.canUndo()} onClick=${() => marks.undo()}>Undo</button></div>
    ${at < 0 ? html`<p>All are judged. Export the decisions below.</p>` : html`<${Judged} key=${removals[at].join()} a=${removals[at][0]} b=${removals[at][1]} />`}</section>`;
}

/** The pair that is judged. */
function Judged({ a, b }) {
  const { source } = useShared();
  const state = useLoaded(() => source.pair(a, b), [a, b]);
  return html`<${Loaded} state=${state}>${(pair) => html`<p>Similarity <strong>${similar(pair.similarity)}</strong>. <a href=${`#/pair/${a}/${b}`}>See the pair</a></p>
    ${pair.a.text !== null && pair.b.text !== null ? html`<${Texts} pair=${pair} isShort setShort=${() => null} spans=${[]} chosen=${null} />` : html`<${NoText} info=${source.info} />`}`}<//>`;
}

function Review() {
  const { marks, source } = useShared();
  const all = sortedMarks(marks.all());
  const { review } = source.info;
  const name = source.info.name.replace(/[^\w.-]+/g, "-");
  const canJudge = review && review.removals.length > 0 && source.info.texts.state === "here";
  const exported = () => marksAsJson(all, canJudge ? estimate(review, marks.judged()) : null);
  const hasAny = all.length > 0 || Object.keys(marks.judged()).length > 0;
  return html`<h1>Review</h1>
    ${canJudge && html`<${Queue} review=${review} />`}
    <h2>Your marks</h2>
    <p class="lead">Mark removals that are wrong, and kept documents that should be removed. Your marks are stored in this browser only; export them to use them in a run.</p>
    ${!marks.isStored() && html`<div class="notice"><p>This browser cannot store marks for this page. Export them before you close it.</p></div>`}
    <div class="actions">
      ${!canJudge && html`<button disabled=${!marks.canUndo()} onClick=${() => marks.undo()}>Undo</button>`}
      <button class="main" disabled=${!hasAny} onClick=${() => download(`${name}-decisions.json`, "application/json", exported())}>Export JSON</button>
      <button disabled=${!all.length} onClick=${() => download(`${name}-decisions.csv`, "text/csv", marksAsCsv(all))}>Export CSV</button>
    </div>
    <p class="caption">Then run <code>neardup dedup INPUT... -o OUT --decisions ${name}-decisions.json</code>.</p>
    ${all.length === 0 ? html`<${Empty}>No document is marked yet.<//>` : html`<div class="scroll" tabindex="0" role="group" aria-label="decisions"><table class="decisions"><thead><tr><th>decision</th><th>document</th><th class="wide">location</th><th>similarity</th><th><span class="sr">action</span></th></tr></thead>
      <tbody>${all.map((mark) => html`<tr><td><span class=${"status " + (mark.decision === "keep" ? "kept" : "removed")}>${mark.decision}</span></td>
        <td><a data-row href=${mark.kept === null ? `#/document/${mark.key}` : `#/pair/${mark.kept}/${mark.key}`}><${Id} id=${mark.id} /></a></td>
        <td class="wide quiet"><${Visible} text=${placeOf(mark)} /></td><td class="figure">${similar(mark.similarity)}</td>
        <td><button onClick=${() => marks.set(mark, null)}>Unmark</button></td></tr>`)}</tbody></table></div>`}`;
}

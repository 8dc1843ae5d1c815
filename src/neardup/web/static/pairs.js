// A list of pairs: its overview, and all pairs by similarity.

function PairsOverview({ info }) {
  const { counts, recall } = info;
  const bins = info.histogram.pairs, isEmpty = !bins.some((value) => value > 0);
  return html`
    ${info.rejected.total > 0 && html`<${Rejected} rejected=${info.rejected} documents=${counts.documents} />`}
    <section class="promise" aria-labelledby="promise">
      <h1 id="promise">${plural(counts.pairs, "pair")} in ${plural(counts.documents, "document")}</h1>
      <p class="lead">${info.finding}</p>
      <dl class="figures">
        <${Figure} name="pairs" value=${count(counts.pairs)} note=${`similarity at least ${info.threshold}`} />
        <${Figure} name="documents in pairs" value=${count(counts.in_pairs)} />
        <${Figure} name="similarity 1" value=${count(counts.exact)} note=${counts.exact === 1 ? "pair" : "pairs"} />
        ${recall.measured && html`<${Figure} name="recall measured" value=${recall.measured} note=${`95 % interval ${recall.low} to ${recall.high}`} />`}
        <${Figure} name="rejected" value=${count(counts.rejected)} />
        <${Figure} name="recall promised" value=${recall.promised} note=${`at similarity ${info.threshold}`} />
      </dl></section>
    <${Warnings} warnings=${info.warnings} />
    <section class="card" aria-labelledby="most"><h2 id="most">Most similar pairs</h2>
      <${FirstPairs} info=${info} /></section>
    <section class="card" aria-labelledby="similarities"><div class="head"><h2 id="similarities">How similar they are</h2>
      ${!isEmpty && html`<${CsvButton} name="similarities" head=${["similarity", "pairs"]} rows=${() => binRows(bins)} />`}</div>
      ${isEmpty ? html`<${Empty}>No pairs were found.<//>` : html`<${Histogram} bins=${bins} low=${lowOf(info, bins)} what="found pairs" names=${{ identical: "of 1", edited: "below 1" }} />`}</section>
    <${Facts} info=${info} />`;
}

const SHOWN_FIRST = 20;

function FirstPairs({ info }) {
  const { source } = useShared();
  const state = useLoaded(() => source.listed({ offset: 0, limit: SHOWN_FIRST, sort: "similarity", search: "" }), []);
  return html`<${Loaded} state=${state}>${({ total, rows }) => total === 0 ? html`<${Empty}>No pairs were found.<//>` : html`
    <div class="scroll" tabindex="0" role="group" aria-label="most similar pairs"><table class="roomy"><thead><tr><th>similarity</th><th>documents</th></tr></thead>
      <tbody>${rows.map((row, at) => html`<tr><td><${Similarity} value=${row.similarity} threshold=${info.threshold} /></td>
        <td><${PairLink} row=${row} at=${at} /></td></tr>`)}</tbody></table></div>
    <p class="caption"><a href="#/pairs">All ${plural(info.counts.pairs, "pair")}</a></p>`}<//>`;
}

const PairLink = ({ row, at, sort = "similarity", search = "" }) => html`<a data-row href=${linkOfPair(row, at, sort, search)}><${Id} id=${row.id_a} /> <span aria-hidden="true">–</span> <${Id} id=${row.id_b} /></a>`;

/** Which pairs this page holds, in words; null for all. */
function scopeOfPairs({ sample, counts }) {
  if (!sample || sample.pairs >= counts.pairs) return null;
  return `The ${count(sample.pairs)} most similar of ${plural(counts.pairs, "pair")}. \`neardup serve\` shows all.`;
}

function PairList({ params }) {
  const { source, go } = useShared();
  const sort = params.get("sort") || "similarity", search = params.get("search") || "";
  const [typed, setTyped] = useState(search);
  const inputs = [sort, search, source.info.texts.state];
  const first = useLoaded(() => source.listed({ offset: 0, limit: 1, sort, search }), inputs);
  const set = (values) => go("pairs", { sort, search, ...values });
  useEffect(() => {
    const timer = setTimeout(() => typed !== search && set({ search: typed }), TYPING_PAUSE);
    return () => clearTimeout(timer);
  }, [typed]);
  const scope = scopeOfPairs(source.info);
  const isFirst = sort === "similarity";
  return html`<h1>Pairs</h1>
    ${scope && html`<p class="caption"><${Prose} text=${scope} /></p>`}
    <label class="filter">Filter by the id or words of either document <input id="search" type="search" value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)} /></label>
    <${Loaded} state=${first}>${({ total }) => html`
      <p class="caption" aria-live="polite">${plural(total, "pair")}</p>
      ${total === 0 ? html`<${Empty}>${search ? "No pair matches." : "No pairs were found."}<//>` : html`
      <div class="table" role="table" aria-label="pairs" aria-rowcount=${total + 1}>
        <div role="rowgroup"><div class="columns of-pairs head-row" role="row">
          <span role="columnheader" aria-sort=${isFirst ? "descending" : "ascending"}><button class="sort" onClick=${() => set({ sort: isFirst ? "-similarity" : "similarity" })}>similarity ${isFirst ? "↓" : "↑"}</button></span>
          <span role="columnheader">documents</span></div></div>
        <${VirtualList} total=${total} rowHeight=${44} label="pairs" inputs=${inputs}
          load=${async (offset, limit) => (await source.listed({ offset, limit, sort, search })).rows}
          row=${(row, at) => html`<div class="columns of-pairs">
            <span role="cell"><${Similarity} value=${row.similarity} threshold=${source.info.threshold} /></span>
            <span role="cell" class="cut"><${PairLink} row=${row} at=${at} sort=${sort} search=${search} /></span></div>`} />
      </div>`}`}<//>`;
}

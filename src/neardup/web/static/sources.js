// Where duplicates come from: removed documents by their source and by that of the kept document.

const nameOfSource = (name) => (name === null ? html`<em>no value</em>` : html`<${Visible} text=${shortenMiddle(name)} isLine />`);
const labelOfSource = (name) => (name === null ? "no value" : spelled(shortenMiddle(name)));
const shortenMiddle = (name) => (name.length > 40 ? `${name.slice(0, 24)}…${name.slice(-14)}` : name);
// Columns of the matrix; the others are in the CSV.
const MAX_COLUMNS_OF_MATRIX = 12;

function SourceMatrix({ info, params }) {
  const { go } = useShared();
  if (!info.sources.length) return null;
  const kind = Math.max(0, info.sources.findIndex((one) => one.by === params.get("by")));
  const { names, documents, cells, label, sentence } = info.sources[kind];
  const most = Math.max(...cells.map((cell) => cell[2]));
  const removed = names.map((_, at) => cells.filter((cell) => cell[0] === at).reduce((sum, cell) => sum + cell[2], 0));
  const caused = names.map((_, at) => cells.filter((cell) => cell[1] === at).reduce((sum, cell) => sum + cell[2], 0));
  const because = names.map((_, at) => at).filter((at) => caused[at]).sort((a, b) => caused[b] - caused[a]);
  const shown = because.slice(0, MAX_COLUMNS_OF_MATRIX);
  const found = new Map(cells.map(([from, to, number]) => [`${from}/${to}`, number]));
  const rows = () => cells.map(([from, to, number]) => [names[from] ?? "", names[to] ?? "", number]);
  return html`<section class="card" aria-labelledby="sources">
    <div class="head"><h2 id="sources">Where the duplicates come from</h2>
      <div class="tools">${info.sources.length > 1 && html`<div class="choice" role="group" aria-label="what a source is">
        ${info.sources.map((one) => html`<button aria-pressed=${one === info.sources[kind] ? "true" : "false"} onClick=${() => go("", { by: one.by, threshold: params.get("threshold") })}><${Visible} text=${one.by} /></button>`)}</div>`}
        <${CsvButton} name="sources" head=${["source", "kept_source", "removed"]} rows=${rows} /></div></div>
    ${kind > 0 && html`<p><${Visible} text=${sentence} /></p>`}
    <p class="caption">Sources by <${Visible} text=${label} />. Removed from the row, because of a document kept in the column. A number lists its clusters.</p>
    <div class="scroll" tabindex="0" role="group" aria-label="sources"><table class="matrix"><thead><tr><th scope="col">source</th><th class="number" scope="col">documents</th><th class="number" scope="col">removed</th>
      ${shown.map((at) => html`<th scope="col" class="because">${nameOfSource(names[at])}</th>`)}</tr></thead>
      <tbody>${names.map((name, from) => html`<tr><th scope="row">${nameOfSource(name)}</th><td class="number">${count(documents[from])}</td><td class="number">${documents[from] ? percent(removed[from] / documents[from], 0) : "–"}</td>
        ${shown.map((to) => {
          const number = found.get(`${from}/${to}`);
          if (!number) return html`<td class="because quiet">·</td>`;
          const share = 0.12 + 0.88 * Math.sqrt(number / most);
          return html`<td class="because"><a class=${`cell wide-cell${share > 0.62 ? " strong" : ""}`} style=${{ "--strength": share }} href=${`#/clusters?cell=${kind}/${from}/${to}`}
            aria-label=${`${plural(number, "document")} removed from ${labelOfSource(name)} because of ${labelOfSource(names[to])}`}>${count(number)}</a></td>`;
        })}</tr>`)}</tbody></table></div>
    ${because.length > shown.length && html`<p class="caption">${plural(because.length - shown.length, "more source")} with kept documents ${because.length - shown.length === 1 ? "is" : "are"} in the CSV.</p>`}</section>`;
}

/** What a filter by two sources shows, in words; null for an unknown one. */
function cellInWords(info, cell) {
  const [kind, from, to] = cell.split("/").map(Number);
  const one = (info.sources || [])[kind];
  if (!one || !(from < one.names.length) || !(to < one.names.length)) return null;
  return `with a document of ${labelOfSource(one.names[from])} that was removed because of one of ${labelOfSource(one.names[to])}`;
}

// The list of all clusters, and one cluster with its members.

/** Which clusters this page holds, in words; null for all. */
function scopeOf(info) {
  const { sample, counts } = info;
  if (!sample) return null;
  const shown = sample.largest + sample.drawn;
  if (shown >= counts.clusters) return null;
  const how = sample.drawn ? `the ${count(sample.largest)} largest and ${count(sample.drawn)} drawn by a hash of the row` : `the ${count(sample.largest)} largest`;
  return `${count(shown)} of ${plural(counts.clusters, "cluster")}: ${how}. \`neardup serve\` shows all.`;
}

function ClusterList({ params }) {
  const { source, go } = useShared();
  const sort = params.get("sort") || "size", search = params.get("search") || "", cell = params.get("cell") || "";
  const [typed, setTyped] = useState(search);
  const inputs = [sort, search, cell, source.info.texts.state];
  const first = useLoaded(() => source.clusters({ offset: 0, limit: 1, sort, search, cell }), inputs);
  const set = (values) => go("clusters", { sort, search, cell, ...values });
  useEffect(() => {
    const timer = setTimeout(() => typed !== search && set({ search: typed }), TYPING_PAUSE);
    return () => clearTimeout(timer);
  }, [typed]);
  const scope = scopeOf(source.info);
  return html`<h1>Clusters</h1>
    ${scope && html`<p class="caption"><${Prose} text=${scope} /></p>`}
    ${cell && cellInWords(source.info, cell) && html`<p class="filtered">Only clusters ${cellInWords(source.info, cell)}. <a href="#/clusters">Show all</a></p>`}
    <label class="filter">Filter by the id or words of the kept document <input type="search" value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)} /></label>
    <${Loaded} state=${first}>${({ total }) => html`
      <p class="caption" aria-live="polite">${plural(total, "cluster")}</p>
      ${total === 0 ? html`<${Empty}>${search ? "No cluster matches." : "Nothing was removed, so there are no clusters."}<//>` : html`
      <div class="table" role="table" aria-label="clusters" aria-rowcount=${total + 1}>
        <div role="rowgroup"><div class="columns head-row" role="row">
          <${SortHead} name="size" label="documents" sort=${sort} set=${set} />
          <${SortHead} name="weakest" label="weakest similarity" sort=${sort} set=${set} />
          <${SortHead} name="id" label="kept document" sort=${sort} set=${set} />
          <span role="columnheader" class="wide">first words</span></div></div>
        <${VirtualList} total=${total} rowHeight=${44} label="clusters" inputs=${inputs}
          load=${async (offset, limit) => (await source.clusters({ offset, limit, sort, search, cell })).rows}
          row=${(row) => html`<div class="columns">
            <span role="cell" class="number">${count(row.size)}</span>
            <span role="cell"><${Similarity} value=${row.weakest} threshold=${source.info.threshold} /></span>
            <span role="cell" class="cut"><a data-row href=${`#/cluster/${row.key}`}><${Id} id=${row.id} /></a></span>
            <span role="cell" class="cut wide quiet"><bdi><${Visible} text=${row.excerpt} /></bdi></span></div>`} />
      </div>`}`}<//>`;
}

function SortHead({ name, label, sort, set }) {
  const isOwn = sort === name || sort === `-${name}`;
  const direction = !isOwn ? "none" : (name === "size") === (sort === name) ? "descending" : "ascending";
  return html`<span role="columnheader" aria-sort=${direction}>
    <button class="sort" onClick=${() => set({ sort: sort === name ? `-${name}` : name })}>${label}${isOwn ? (direction === "descending" ? " ↓" : " ↑") : ""}</button></span>`;
}

function ClusterView({ number }) {
  const { source } = useShared();
  const state = useLoaded(() => source.cluster(number), [number, source.info.texts.state]);
  return html`<${Loaded} state=${state}>${(cluster) => html`<${Cluster} cluster=${cluster} info=${source.info} />`}<//>`;
}

function Cluster({ cluster, info }) {
  const kept = cluster.documents[0], members = cluster.documents.slice(1);
  const hiddenMembers = cluster.size - cluster.documents.length;
  useTitle(`Cluster of ${kept.id}`);
  return html`<p class="crumbs"><a href="#/clusters">Clusters</a></p>
    <h1><${Id} id=${kept.id} /></h1>
    <${WholeId} id=${kept.id} />
    <p class="lead">Kept, and represents ${plural(cluster.size - 1, "other document")}. ${members.length ? html`The weakest similarity is ${similar(cluster.weakest)}.` : ""}</p>
    <p class="caption"><${Visible} text=${placeOf(kept)} /></p>
    <div class="actions"><${MarkButton} one=${kept} /></div>
    <section class="card" aria-labelledby="members"><h2 id="members">Members</h2>
      ${hiddenMembers > 0 && html`<p class="caption">${count(members.length)} of ${count(cluster.size - 1)} members: the most and the least similar ones.</p>`}
      <div class="scroll" tabindex="0" role="group" aria-label="members"><table><thead><tr><th>similarity to the kept document</th><th>document</th><th class="wide">location</th><th>decision</th></tr></thead>
        <tbody>${members.map((one) => html`<tr><td><${Similarity} value=${one.similarity} threshold=${info.threshold} /></td>
          <td><a data-row href=${`#/pair/${cluster.key}/${one.key}`}><${Id} id=${one.id} /></a></td>
          <td class="wide quiet"><${Visible} text=${placeOf(one)} /></td>
          <td><${MarkButton} one=${one} isSmall /></td></tr>`)}</tbody></table></div></section>
    ${cluster.matrix && html`<${HeatMap} cluster=${cluster} />`}
    ${!cluster.matrix && cluster.size >= 4 && cluster.size <= 20 && kept.text !== null && info.measure === "jaccard" && html`<p class="caption">No heat map: the texts are too long to compare all pairs of them for this page.</p>`}
    <${SharedText} cluster=${cluster} info=${info} />`;
}

/** The similarity of every two members. */
function HeatMap({ cluster }) {
  const { documents, matrix } = cluster, size = documents.length;
  const least = Math.min(...matrix), labels = documents.map((one) => labelOf(one.id));
  const of = (low, high) => (low === high ? 1 : matrix[cellOf(Math.min(low, high), Math.max(low, high), size)]);
  // Pale to strong, without the shades on which neither dark nor light figures are readable.
  const rank = (value) => (least === 1 ? 1 : (value - least) / (1 - least));
  const strength = (value) => (rank(value) < 0.75 ? 0.1 + 0.45 * rank(value) : 0.52 + 0.48 * rank(value));
  return html`<section class="card" aria-labelledby="heat"><h2 id="heat">Pairwise similarities</h2>
    <p class="caption"><span class="cell legend-cell" style=${{ "--strength": strength(least) }}></span> ${similar(least)} <span class="cell legend-cell" style=${{ "--strength": 1 }}></span> 1.0. Document 1 is the kept one.</p>
    <div class="scroll" tabindex="0" role="group" aria-label="heat map"><table class="heat"><thead><tr><td></td>${documents.map((_, at) => html`<th scope="col">${at + 1}</th>`)}<td></td></tr></thead>
      <tbody>${documents.map((one, low) => html`<tr><th scope="row">${low + 1}</th>
        ${documents.map((other, high) => {
          const value = of(low, high), label = `${labels[low]} and ${labels[high]}: ${similar(value)}`;
          return html`<td>${low === high
            ? html`<span class="cell same"></span>`
            : html`<a class=${"cell" + (rank(value) >= 0.75 ? " strong" : "")} href=${`#/pair/${one.key}/${other.key}`} title=${label} aria-label=${label}
                style=${{ "--strength": strength(value) }}>${value === 1 ? "1" : floorTo(value, 2).slice(1)}</a>`}</td>`;
        })}<td class="quiet cut"><${Id} id=${one.id} /></td></tr>`)}</tbody></table></div></section>`;
}

/** The kept text; what every member has too is highlighted, as the library found it in whole texts. */
function SharedText({ cluster, info }) {
  const { shared } = cluster, kept = cluster.documents[0];
  const spans = useMemo(() => (shared && shared.spans && kept.text !== null ? placeSpans(kept.text, shared.spans, true) : null), [cluster]);
  if (kept.text === null) return html`<${NoText} info=${info} />`;
  const parts = [];
  let end = 0;
  for (const [start, stop] of spans || []) {
    parts.push(html`<span class="apart"><${Visible} text=${kept.text.slice(end, start)} /></span>`);
    parts.push(html`<span class="shared"><${Visible} text=${kept.text.slice(start, stop)} /></span>`);
    end = stop;
  }
  parts.push(html`<span class=${spans ? "apart" : ""}><${Visible} text=${kept.text.slice(end)} /></span>`);
  return html`<section class="card" aria-labelledby="share"><h2 id="share">Shared text</h2>
    <p class="caption">${shared ? `${count(shared.shared)} of the ${plural(shared.shingles, "shingle")} of the kept text are in ${scopeOfShared(shared, cluster.size)}${spans ? "; the rest is grey" : ""}.` : "What all members share was not computed: their texts are too long, or not available."}</p>
    <div class=${`text ${faceOf(kept.text)}`} tabindex="0" role="group" aria-label="text of the kept document"><bdi>${parts}</bdi></div>
    <${Cut} one=${kept} /></section>`;
}

const scopeOfShared = ({ members }, size) => (members === size ? (size === 2 ? "both documents" : `all ${count(size)} documents`) : `all of the ${count(members)} documents shown`);

const Cut = ({ one }) => !one.is_whole && one.text !== null && html`<p class="caption cut-here">Cut here: ${count(one.text.length)} characters of a text of ${bytes(one.bytes)}${one.behind ? `; ${plural(one.behind, "word")} left out` : ""}.</p>`;

/** Code and tables keep their columns; prose gets a face to read. */
function faceOf(text) {
  const lines = text.slice(0, 20_000).split("\n").filter((line) => line.trim());
  const isCode = (line) => /[{}]\s*$|^\s*[#/*].*|\S {3,}\S|^\s+\S{0,60}$|^(\t| {2,})\S.*[;:,)]$/.test(line);
  return lines.filter(isCode).length > 0.3 * lines.length ? "code" : "prose";
}

const NoText = ({ info }) => html`<div class="notice"><p>The texts are not available: <${Visible} text=${info.texts.reason || "they are still being read"} />.</p></div>`;

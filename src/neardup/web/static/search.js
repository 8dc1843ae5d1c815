// Search by id and by words; one document and why it was removed; on an index, a text and its near-duplicates.

function Search({ params }) {
  const { source, go } = useShared();
  const wanted = params.get("search") || "";
  const [typed, setTyped] = useState(wanted);
  const state = useLoaded(async () => (wanted ? source.search(wanted) : null), [wanted, source.info.texts.search?.indexed]);
  useEffect(() => {
    const timer = setTimeout(() => typed !== wanted && go("search", { search: typed }), TYPING_PAUSE);
    return () => clearTimeout(timer);
  }, [typed]);
  return html`<h1>Search</h1>
    <label class="filter">Id, or words of the text <input id="search" type="search" value=${typed} autofocus onInput=${(event) => setTyped(event.currentTarget.value)} /></label>
    ${wanted && html`<${Loaded} state=${state}>${(found) => html`<${Found} found=${found} info=${source.info} />`}<//>`}
    ${!wanted && html`<${Empty}>Type the id of a document, or words of its text.<//>`}`;
}

function Found({ found, info }) {
  return html`<p class="caption" aria-live="polite">${plural(found.total, "document")} found${found.total > found.rows.length ? `, the first ${count(found.rows.length)} shown` : ""}. ${scopeOfSearch(found, info)}</p>
    ${found.rows.length === 0 ? html`<${Empty}>No document found.<//>` : html`<ul class="results">${found.rows.map((one) => html`<li>
      <a data-row href=${`#/document/${one.key}`}><${Id} id=${one.id} /></a> <${Status} one=${one} />
      <p class="quiet"><bdi><${Visible} text=${one.text || ""} /></bdi></p></li>`)}</ul>`}`;
}

/** What was searched, in words; says so wherever that is not everything. */
function scopeOfSearch({ num_ids, num_texts }, info) {
  const usable = info.counts.documents - info.counts.rejected;
  const { state, reason, search } = info.texts;
  const isFile = search === undefined;
  if (isFile && state === "here") return `Searched the ids and texts in this report: ${count(num_ids)} of ${plural(usable, "document")}.`;
  if (state === "absent") return `Searched ids only, because the texts are not available: ${reason}.`;
  if (search?.error) return `Searched all ids, and the words of ${count(num_texts)} documents: ${search.error}.`;
  if (num_texts < num_ids) return `Partial: the words of ${count(num_texts)} of ${plural(num_ids, "document")} are indexed so far.`;
  return `Searched the ids and texts of ${plural(num_ids, "document")}.`;
}

const Status = ({ one }) => html`<span class=${"status " + (one.kept === null ? "kept" : "removed")}>${one.kept === null ? "kept" : "removed"}</span>`;

function DocumentView({ number }) {
  const { source } = useShared();
  const state = useLoaded(async () => {
    const one = await source.document(number);
    return { one, kept: one.kept === null ? null : await source.document(one.kept) };
  }, [number, source.info.texts.state]);
  useTitle(state.value && state.value.one.id);
  return html`<${Loaded} state=${state}>${({ one, kept }) => html`
    <p class="crumbs"><a href="#/search">Search</a></p>
    <h1><${Id} id=${one.id} /> <${Status} one=${one} /></h1>
    <${WholeId} id=${one.id} />
    <p class="lead" id="why">${kept
      ? html`Removed: it ${source.info.asks_containment ? `contains ${percent(one.similarity)} of the shingles of` : `has a similarity of ${similar(one.similarity)} to`} <a data-row href=${`#/pair/${kept.key}/${one.key}`}><${Id} id=${kept.id} /></a>, which was kept.`
      : one.size ? html`Kept. ${plural(one.size - 1, "document")} removed in its favour. <a data-row href=${`#/cluster/${one.key}`}>See the cluster</a>`
      : `Kept. ${source.info.reason_to_keep}, and nothing was removed in its favour.`}</p>
    <p class="caption"><${Visible} text=${placeOf(one)} />${one.bytes !== null && html`, ${bytes(one.bytes)}`}</p>
    <div class="actions"><${MarkButton} one=${one} /></div>
    ${one.text === null ? html`<${NoText} info=${source.info} />` : html`<div class=${`text ${faceOf(one.text)}`} tabindex="0" role="group" aria-label="text"><bdi><${Visible} text=${one.text} /></bdi></div><${Cut} one=${one} />`}`}<//>`;
}

function IndexOverview({ info }) {
  const { source } = useShared();
  const [text, setText] = useState("");
  const [asked, setAsked] = useState(null);
  const [isOver, setOver] = useState(false);
  const state = useLoaded(async () => (asked === null ? { matches: [] } : source.query(asked)), [asked]);
  const drop = async (event) => {
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer.files[0];
    if (!file) return;
    const dropped = await file.text();
    setText(dropped);
    setAsked(dropped);
  };
  return html`<h1>${plural(info.counts.documents, "document")} in <${Visible} text=${info.name} /></h1>
    <p class="lead">${info.finding}</p>
    <form class=${"ask" + (isOver ? " is-over" : "")} onSubmit=${(event) => { event.preventDefault(); setAsked(text); }}
      onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <label for="ask">Paste a text, or drop a file here</label>
      <textarea id="ask" rows="8" value=${text} onInput=${(event) => setText(event.currentTarget.value)}></textarea>
      <button type="submit" class="main" disabled=${!text.trim()}>Find near-duplicates</button>
    </form>
    ${asked !== null && html`<${Loaded} state=${state}>${({ matches }) => html`
      <p class="caption" aria-live="polite">${plural(matches.length, "near-duplicate")} found.</p>
      ${matches.length === 0 ? html`<${Empty}>No document of the index has a similarity of at least ${info.threshold}.<//>` : html`<table><thead><tr><th>similarity</th><th>document</th></tr></thead>
        <tbody>${matches.map((match) => html`<tr><td><${Similarity} value=${match.similarity} threshold=${info.threshold} /></td><td><${Id} id=${match.doc_id} /><${WholeId} id=${match.doc_id} /></td></tr>`)}</tbody></table>`}`}<//>`}
    <section class="card" aria-labelledby="facts"><h2 id="facts">This index</h2><dl class="facts">${info.settings.map(([name, value]) => html`<dt>${name}</dt><dd><${Visible} text=${value} /></dd>`)}</dl></section>`;
}

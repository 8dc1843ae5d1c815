// What the reader has marked, to undo and to export.

function Review() {
  const { marks, source } = useShared();
  const all = sortedMarks(marks.all());
  const name = source.info.name.replace(/[^\w.-]+/g, "-");
  return html`<h1>Review</h1>
    <p class="lead">Mark removals that are wrong, and kept documents that should be removed. Your marks are stored in this browser only; export them to use them in a run.</p>
    ${!marks.isStored() && html`<div class="notice"><p>This browser cannot store marks for this page. Export them before you close it.</p></div>`}
    <div class="actions">
      <button disabled=${!marks.canUndo()} onClick=${() => marks.undo()}>Undo</button>
      <button class="main" disabled=${!all.length} onClick=${() => download(`${name}-decisions.json`, "application/json", marksAsJson(all))}>Export JSON</button>
      <button disabled=${!all.length} onClick=${() => download(`${name}-decisions.csv`, "text/csv", marksAsCsv(all))}>Export CSV</button>
    </div>
    <p class="caption">Then run <code>neardup dedup INPUT... -o OUT --decisions ${name}-decisions.json</code>.</p>
    ${all.length === 0 ? html`<${Empty}>No document is marked yet.<//>` : html`<div class="scroll" tabindex="0" role="group" aria-label="decisions"><table><thead><tr><th>decision</th><th>document</th><th class="wide">location</th><th>similarity</th><th><span class="sr">action</span></th></tr></thead>
      <tbody>${all.map((mark) => html`<tr><td><span class=${"status " + (mark.decision === "keep" ? "kept" : "removed")}>${mark.decision}</span></td>
        <td><a data-row href=${mark.kept === null ? `#/document/${mark.key}` : `#/pair/${mark.kept}/${mark.key}`}><${Id} id=${mark.id} /></a></td>
        <td class="wide quiet"><${Visible} text=${placeOf(mark)} /></td><td class="figure">${similar(mark.similarity)}</td>
        <td><button onClick=${() => marks.set(mark, null)}>Unmark</button></td></tr>`)}</tbody></table></div>`}`;
}

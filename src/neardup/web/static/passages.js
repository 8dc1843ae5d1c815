// The passages that the texts of a pair share, as the list of pairs has them: listed, and where they stand in the texts.

const QUOTE = 90;

/** Places in a text of some code points, ascending: in UTF-16, as scripts count; null behind the end. */
function findPlaces(text, codePoints) {
  if (!/[\ud800-\udfff]/.test(text)) return codePoints.map((at) => (at <= text.length ? at : null));
  const places = [];
  let at = 0, number = 0;
  for (const wanted of codePoints) {
    while (number < wanted && at < text.length) {
      at += text.codePointAt(at) > 0xffff ? 2 : 1;
      number++;
    }
    places.push(number === wanted ? at : null);
  }
  return places;
}

/** Spans of code points as places in a text; null for a span that does not lie in it, all of it, or left out and cut. */
function placeSpans(text, spans, isCut = false) {
  if (text === null) return spans.map(() => null);
  const edges = [...new Set(spans.flat())].sort((x, y) => x - y);
  const found = findPlaces(text, edges);
  const places = new Map(edges.map((edge, at) => [edge, found[at]]));
  if (isCut) return spans.filter(([start]) => places.get(start) !== null).map(([start, end]) => [places.get(start), places.get(end) ?? text.length]);
  return spans.map(([start, end]) => (places.get(end) === null ? null : [places.get(start), places.get(end)]));
}

/** The passages of a pair, null without any: rows, how many are not shown, and how many do not lie in the texts. */
function readPassages({ a, b, passages }) {
  if (!passages) return null;
  const read = passages.rows.map(([words, similarity, startA, endA, lineA, startB, endB, lineB]) => (
    { words, similarity, first: { span: [startA, endA], line: lineA }, second: { span: [startB, endB], line: lineB } }
  ));
  // The list names the document with the smaller key first.
  const [left, right] = a.key < b.key ? ["first", "second"] : ["second", "first"];
  const inA = placeSpans(a.text, read.map((row) => row[left].span)), inB = placeSpans(b.text, read.map((row) => row[right].span));
  const isWrong = (one, place) => one.text !== null && one.is_whole && place === null;
  const rows = [];
  read.forEach(({ words, similarity, ...sides }, at) => {
    if (isWrong(a, inA[at]) || isWrong(b, inB[at])) return;
    rows.push({ words, similarity, a: inA[at], b: inB[at], lines: [sides[left].line, sides[right].line], number: rows.length });
  });
  return { rows, numWrong: read.length - rows.length, numMore: passages.total - read.length };
}

/** Which parts of a text lie in a passage, given the edges of the parts: one flag for each part. */
function coverage(places, spans) {
  const changes = new Map();
  for (const [start, end] of spans) {
    changes.set(start, (changes.get(start) || 0) + 1);
    changes.set(end, (changes.get(end) || 0) - 1);
  }
  let depth = 0;
  return places.map((place) => (depth += changes.get(place) || 0) > 0);
}

/** The first words of a passage. */
function quoteOf(text, [start, end]) {
  // Only whole characters.
  const quoted = text.slice(start, Math.min(end, start + QUOTE)).replace(/[\ud800-\udbff]$/, "").replace(/\s+/g, " ");
  return start + QUOTE < end ? `${quoted.slice(0, quoted.lastIndexOf(" ") + 1 || quoted.length)}…` : quoted;
}

function Passages({ pair, passages, chosen, choose }) {
  const { rows, numWrong, numMore } = passages;
  const { a, b } = pair;
  const hasTexts = a.text !== null && b.text !== null;
  const numBehind = hasTexts ? rows.filter((row) => !row.a || !row.b).length : 0;
  return html`<section class="card" aria-labelledby="passages"><h2 id="passages">Shared passages</h2>
    ${rows.length === 0 ? html`<p class="caption">${numWrong ? "None can be shown." : "The texts share no passage that is long enough."}</p>` : html`
    <ol class="passages" tabindex="0" aria-label="shared passages">${rows.map((row) => html`<li key=${row.number}>
      ${row.a && row.b ? html`<button class="jump" aria-pressed=${chosen === row ? "true" : "false"} onClick=${() => choose(row)}><bdi><${Visible} text=${quoteOf(a.text, row.a)} isLine /></bdi></button>`
        : html`<bdi class="quiet">${row.a ? html`<${Visible} text=${quoteOf(a.text, row.a)} isLine />` : row.b ? html`<${Visible} text=${quoteOf(b.text, row.b)} isLine />` : hasTexts ? "not in the stored texts" : "no text"}</bdi>`}
      <span class="note">${plural(row.words, "word")}, similarity ${similar(row.similarity)}, line ${count(row.lines[0])} on the left, ${count(row.lines[1])} on the right${hasTexts && !(row.a && row.b) ? "; beyond the cut" : ""}</span></li>`)}</ol>`}
    ${numBehind > 0 && html`<p class="caption">${plural(numBehind, "passage")} beyond the cut of a text ${numBehind === 1 ? "has" : "have"} no link.</p>`}
    ${numMore > 0 && html`<p class="caption">${plural(numMore, "passage")} with fewer words ${numMore === 1 ? "is" : "are"} not listed here.</p>`}
    ${numWrong > 0 && html`<p class="caption">${plural(numWrong, "passage")} of the list of pairs ${numWrong === 1 ? "does" : "do"} not lie in the texts and ${numWrong === 1 ? "is" : "are"} left out: the list is damaged, or not of these texts.</p>`}
  </section>`;
}

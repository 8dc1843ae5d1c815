// Charts as SVG: colours from the style sheet, so that they follow the theme and print as they look.

const MARGIN = { left: 56, right: 16, top: 14, bottom: 44 };

/** Steps of 1, 2 or 5 times a power of ten from 0 to at least `most`; whole numbers only. */
function countTicks(most, wanted = 4) {
  const raw = Math.max(1, most / wanted), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((times) => times * power).find((value) => value >= raw - 1e-9);
  const ticks = [];
  for (let value = 0; value < most + step; value += step) ticks.push(value);
  return ticks;
}

/** Similarities from `low` to `high` at multiples of .01, .02, .05, .1 or .2. */
function similarityTicks(low, high, wanted) {
  const step = [0.01, 0.02, 0.05, 0.1, 0.2].find((value) => (high - low) / value <= wanted) || 0.5;
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9; at++) ticks.push(+(at * step).toFixed(2));
  return ticks;
}

/** A chart as wide as its place; `draw` gets the width and returns what is inside. */
function Chart({ label, height = 240, draw, children, ...more }) {
  const place = useRef(null);
  const [width, setWidth] = useState(520);
  useLayoutEffect(() => {
    const measure = () => place.current && setWidth(Math.max(260, place.current.clientWidth));
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  return html`<div class="chart" ref=${place}><svg viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} role="img" aria-label=${label} ...${more}>
    ${draw(width, height)}</svg>${children}</div>`;
}

/** Where values stand between two edges. */
const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

const logScale = (low, high, from, to) => {
  const linear = scale(Math.log10(low), Math.log10(high), from, to);
  return (value) => linear(Math.log10(value));
};

/** The lines, numbers and titles of both axes. */
function Axes({ width, height, x, y, xTicks, yTicks, xTitle, yTitle, right = width - MARGIN.right, spellX = String, spellY = count }) {
  const bottom = height - MARGIN.bottom;
  return html`<g class="axes">
    ${yTicks.map((value) => html`<line class="grid" x1=${MARGIN.left} x2=${right} y1=${y(value)} y2=${y(value)} />
      <text x=${MARGIN.left - 8} y=${y(value) + 4} text-anchor="end">${spellY(value)}</text>`)}
    ${xTicks.map((value) => html`<text x=${x(value)} y=${bottom + 16} text-anchor="middle">${spellX(value)}</text>`)}
    <text class="title" x=${(MARGIN.left + right) / 2} y=${height - 6} text-anchor="middle">${xTitle}</text>
    <text class="title" transform=${`translate(11 ${(MARGIN.top + bottom) / 2}) rotate(-90)`} text-anchor="middle">${yTitle}</text></g>`;
}

/** Saves the numbers behind a chart or a table. */
function CsvButton({ name, head, rows }) {
  const { source } = useShared();
  const save = () => {
    const lines = [head, ...rows()].map((row) => row.map(csvCell).join(","));
    download(`${source.info.name.replace(/[^\w.-]+/g, "-")}-${name}.csv`, "text/csv", lines.join("\r\n") + "\r\n");
  };
  return html`<button class="csv" onClick=${save} title="save these numbers as CSV">CSV</button>`;
}

/** Similarities by hundredths from the threshold on; equal sets have a bar of their own, broken if it is long. */
function Histogram({ bins, low, line, what, names, onPick }) {
  const first = Math.floor(low * 100 + 1e-9), identical = bins[100];
  const edited = bins.slice(first, 100);
  const most = Math.max(1, ...edited), ticks = countTicks(most), top = ticks[ticks.length - 1];
  const isBroken = identical > top;
  const label = `${what} by similarity from ${low.toFixed(2)} to 1: ${count(edited.reduce((sum, value) => sum + value, 0))} ${names.edited}, ${count(identical)} ${names.identical}`;
  const draw = (width, height) => {
    const right = width - MARGIN.right - 100, bottom = height - MARGIN.bottom;
    const x = scale(low, 1, MARGIN.left, right), y = scale(0, top, bottom, MARGIN.top);
    const step = x(low + 0.01) - x(low), tall = isBroken ? MARGIN.top : y(identical), at = right + 36;
    const bar = (bin, value, left, wide, up, kind) => value > 0 && html`<rect key=${bin} class=${`column ${kind}${line !== undefined && bin / 100 < line - 1e-9 ? " back" : ""}${onPick ? " pick" : ""}`} x=${left} width=${wide} y=${up} height=${bottom - up}
      tabindex=${onPick ? 0 : null} role=${onPick ? "link" : null} onClick=${() => onPick && onPick(bin)} onKeyDown=${(event) => event.key === "Enter" && onPick && onPick(bin)}>
      <title>${bin === 100 ? `1: ${count(value)}` : `${(bin / 100).toFixed(2)} to ${((bin + 1) / 100).toFixed(2)}: ${count(value)}`}</title></rect>`;
    return html`<${Axes} width=${width} height=${height} right=${right} x=${x} y=${y} xTicks=${similarityTicks(low, 1, (right - MARGIN.left) / 46)} yTicks=${ticks} xTitle="similarity" yTitle=${what} spellX=${(value) => value.toFixed(2)} />
      ${edited.map((value, number) => bar(first + number, value, x(Math.max(low, (first + number) / 100)) + 0.5, Math.max(1, step - 1), y(value), "edited"))}
      ${bar(100, identical, at, 38, tall, "identical")}
      ${isBroken && html`<path class="break" d=${`M${at - 5} ${tall + 26} l48 -9 v6 l-48 9 z`} />`}
      <text class="strong" x=${at + 19} y=${Math.max(11, tall - 4)} text-anchor="middle">${count(identical)}</text>
      <text x=${at + 19} y=${bottom + 16} text-anchor="middle">${names.identical}</text>
      ${line !== undefined && line > low && html`<line class="mark" x1=${x(line)} x2=${x(line)} y1=${MARGIN.top} y2=${bottom} />`}`;
  };
  return html`<${Chart} label=${label} draw=${draw} />`;
}

/** The chance of being found by similarity. */
function SCurve({ curve, threshold, isExact }) {
  const draw = (width, height) => {
    const bottom = height - MARGIN.bottom;
    const x = scale(0, 1, MARGIN.left, width - MARGIN.right), y = scale(0, 1, bottom, MARGIN.top);
    const points = isExact
      ? `${x(0)},${y(0)} ${x(threshold)},${y(0)} ${x(threshold)},${y(1)} ${x(1)},${y(1)}`
      : curve.map((value, at) => `${x(at / 100).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    return html`<${Axes} width=${width} height=${height} x=${x} y=${y} xTicks=${[0, 0.2, 0.4, 0.6, 0.8, 1]} yTicks=${[0, 0.25, 0.5, 0.75, 1]} xTitle="similarity" yTitle="chance of being found" spellX=${(value) => value.toFixed(1)} spellY=${(value) => `${100 * value} %`} />
      <line class="mark" x1=${x(threshold)} x2=${x(threshold)} y1=${MARGIN.top} y2=${bottom} />
      <polyline class="curve" points=${points} />`;
  };
  const at = isExact ? 1 : curve[Math.round(threshold * 100)];
  return html`<${Chart} draw=${draw} label=${`Chance of finding a pair by its similarity: ${percent(at, isExact ? 0 : 2)} at the threshold ${threshold}`} />`;
}

/** How many clusters have which size, both on logarithmic scales; the most common size is named. */
function Sizes({ sizes }) {
  const largest = Math.max(...sizes.map((row) => row[0])), most = Math.max(...sizes.map((row) => row[1]));
  const usual = sizes.find((row) => row[1] === most);
  const draw = (width, height) => {
    const bottom = height - MARGIN.bottom, up = Math.max(10, most * 1.6), wide = Math.max(10, largest * 1.3);
    const x = logScale(1.8, wide, MARGIN.left, width - MARGIN.right), y = logScale(0.8, up, bottom, MARGIN.top);
    const powers = (end) => [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6].filter((value) => value <= end);
    const thin = (values, room) => (values.length > room ? values.filter((value) => /^[12]?0*$/.test(String(value)) && String(value)[0] === "1") : values);
    return html`<${Axes} width=${width} height=${height} x=${x} y=${y} xTicks=${thin(powers(wide).filter((value) => value > 1), (width - 70) / 48)} yTicks=${thin(powers(up), 6)} xTitle="documents in the cluster" yTitle="clusters" spellX=${count} />
      ${sizes.map(([size, number]) => html`<circle class="dot" cx=${x(size)} cy=${y(number)} r="4"><title>${plural(number, "cluster")} of ${plural(size, "document")}</title></circle>`)}
      <text class="strong" x=${x(usual[0]) + 9} y=${y(most) + 4}>${plural(most, "cluster")} of ${count(usual[0])}</text>`;
  };
  return html`<${Chart} draw=${draw} label=${`Clusters by size: most, ${count(most)}, have ${plural(usual[0], "document")}, the largest ${count(largest)}`} />`;
}

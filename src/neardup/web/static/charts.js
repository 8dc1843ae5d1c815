// Charts by uPlot: colours from the style sheet, redrawn when the theme or the width changes.

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const axis = (more) => ({
  stroke: colour("quiet"),
  grid: { stroke: colour("line"), width: 1 },
  ticks: { show: false },
  font: `12px ${getComputedStyle(document.body).fontFamily}`,
  ...more,
});

const short = (value) =>
  value === null ? "" : value >= 1e6 ? `${+(value / 1e6).toFixed(1)}M` : value >= 1e3 ? `${+(value / 1e3).toFixed(1)}k` : `${+value.toFixed(2)}`;

function Chart({ make, data, label, height = 220 }) {
  const place = useRef(null);
  const { theme } = useShared();
  useLayoutEffect(() => {
    const width = () => Math.max(240, place.current.clientWidth);
    const chart = new uPlot({
      width: width(), height, cursor: { show: false }, legend: { show: false }, padding: [12, 12, 0, 0], ...make(),
    }, data, place.current);
    const watch = new ResizeObserver(() => chart.setSize({ width: width(), height }));
    watch.observe(place.current);
    return () => {
      watch.disconnect();
      chart.destroy();
    };
  }, [theme, data, height]);
  return html`<div class="chart" ref=${place} role="img" aria-label=${label}></div>`;
}

const bars = (name, fill, more) => ({
  label: name, stroke: fill, fill, width: 0, points: { show: false },
  paths: uPlot.paths.bars({ size: [0.9, 20, 1], align: 1 }), ...more,
});

/** A dashed line at a similarity. */
const lineAt = (value) => (chart) => {
  const { ctx } = chart, x = Math.round(chart.valToPos(value, "x", true));
  ctx.save();
  ctx.strokeStyle = colour("text");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(x, chart.bbox.top);
  ctx.lineTo(x, chart.bbox.top + chart.bbox.height);
  ctx.stroke();
  ctx.restore();
};

/** Similarities by hundredths; what is at or above the threshold is coloured. */
function Histogram({ bins, threshold, from, what }) {
  const data = useMemo(() => {
    const at = [], above = [], below = [];
    for (let bin = Math.max(0, Math.floor(from * 100)); bin <= 100; bin++) {
      const isAbove = bin >= Math.round(threshold * 100);
      at.push(bin / 100);
      above.push(isAbove ? bins[bin] : 0);
      below.push(isAbove ? 0 : bins[bin]);
    }
    return [at, below, above];
  }, [bins, threshold, from]);
  const most = Math.max(1, ...data[1], ...data[2]);
  const make = () => ({
    scales: { x: { time: false, range: () => [from - 0.005, 1.015] }, y: { range: [0, most * 1.05] } },
    axes: [axis({ size: 28, values: (_, values) => values.map((value) => value.toFixed(2)) }), axis({ size: 48, values: (_, values) => values.map(short) })],
    series: [{}, bars("below", colour("muted-bar")), bars("above", colour("accent"))],
    hooks: { draw: [lineAt(threshold)] },
  });
  return html`<${Chart} make=${make} data=${data} label=${`Histogram of the similarities of ${what}, from ${from.toFixed(2)} to 1`} />`;
}

/** The chance of being found by similarity, over the histogram of what was found. */
function SCurve({ curve, bins, threshold }) {
  const most = Math.max(1, ...bins);
  const data = useMemo(() => [curve.map((_, at) => at / 100), bins.map((value) => value / most), curve], [curve, bins]);
  const make = () => ({
    scales: { x: { time: false, range: [0, 1.01] }, y: { range: [0, 1.05] } },
    axes: [axis({ size: 28 }), axis({ size: 48, values: (_, values) => values.map((value) => `${Math.round(100 * value)} %`) })],
    series: [{}, bars("removals", colour("muted-bar")), { label: "chance", stroke: colour("accent"), width: 2, points: { show: false } }],
    hooks: { draw: [lineAt(threshold)] },
  });
  return html`<${Chart} make=${make} data=${data} label=${`Chance of finding a pair by its similarity: ${percent(curve[Math.round(threshold * 100)], 2)} at the threshold ${threshold}`} />`;
}

/** How many clusters have which size, both on logarithmic scales. */
function Sizes({ sizes }) {
  const data = useMemo(() => [sizes.map((row) => row[0]), sizes.map((row) => row[1])], [sizes]);
  const largest = Math.max(...data[0]), most = Math.max(...data[1]);
  const whole = (_, values) => values.map((value) => (value !== null && /^[125]0*$/.test(String(value)) ? short(value) : ""));
  const all = (_, splits) => splits;
  const make = () => ({
    scales: { x: { time: false, distr: 3, range: [1.5, Math.max(10, largest * 1.4)] }, y: { distr: 3, range: [0.7, Math.max(10, most * 1.6)] } },
    axes: [axis({ size: 28, values: whole, filter: all, space: 20 }), axis({ size: 48, values: whole, filter: all, space: 20 })],
    series: [{}, { label: "clusters", stroke: colour("accent"), paths: () => null, points: { show: true, size: 6, fill: colour("accent"), width: 0 } }],
  });
  return html`<${Chart} make=${make} data=${data} label=${`Clusters by size, the largest with ${count(largest)} documents`} />`;
}

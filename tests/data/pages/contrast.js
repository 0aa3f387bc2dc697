// Texts whose contrast with what lies behind them is too low (WCAG 2.2, 1.4.3), and lines and bars
// whose contrast is (1.4.11).
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgba(colour) {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
}
function behind(e) {
  for (; e; e = e.parentElement) {
    const [r, g, b, a] = rgba(getComputedStyle(e).backgroundColor);
    if (a === 1) { return [r, g, b]; }
  }
  return [255, 255, 255];
}
function luminance(c) {
  const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
const found = new Map();
function check(colour, e, wanted, what) {
  const ratio = contrast(rgba(colour).slice(0, 3), behind(e));
  if (ratio < wanted) { found.set(what + " " + colour + " on " + behind(e), ratio.toFixed(2)); }
}
for (const e of document.querySelectorAll("body *")) {
  const written = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!written || !e.getClientRects().length || e.closest(".unseen, script")) { continue; }
  const style = getComputedStyle(e), size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
  check(e.closest("svg") ? style.fill : style.color, e, large ? 3 : 4.5, e.tagName + "." + e.className);
}
for (const e of document.querySelectorAll("path.curve, path.mark")) { check(getComputedStyle(e).stroke, e, 3, "line"); }
for (const e of document.querySelectorAll(".bar")) { check(getComputedStyle(e).backgroundColor, e.parentElement, 3, "bar"); }
return [...found];

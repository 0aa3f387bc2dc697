// Headings of columns whose longest word does not fit on a line of theirs.
const canvas = document.createElement("canvas").getContext("2d");
return [...document.querySelectorAll("thead th")]
  .filter((e) => {
    const style = getComputedStyle(e);
    canvas.font = style.font;
    const words = e.innerText.split(/\s+|(?<=-)/).map((word) => canvas.measureText(word).width);
    const room = e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return e.getClientRects().length && Math.max(...words) > room + 2;
  })
  .map((e) => e.outerHTML.slice(0, 120)).slice(0, 5);

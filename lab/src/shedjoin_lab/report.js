"use strict";
const boxes = [...document.querySelectorAll("input[type=checkbox]")];
const search = document.getElementById("search");
function chosen(kind) {
  return new Set(boxes.filter((box) => box.checked && box.dataset[kind]).map((box) => box.dataset[kind]));
}
function show() {
  const verdicts = chosen("verdict"), papers = chosen("paper"), words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const narrow = words.length > 0 || boxes.some((box) => !box.checked);
  let count = 0;
  for (const section of document.querySelectorAll("section")) {
    const here = papers.has(section.dataset.paper);
    let inSection = 0;
    for (const figure of section.querySelectorAll(".figure")) {
      let inFigure = 0;
      for (const claim of figure.querySelectorAll(".claim")) {
        const text = claim.textContent.toLowerCase();
        claim.hidden = !(here && verdicts.has(claim.dataset.verdict) && words.every((word) => text.includes(word)));
        inFigure += claim.hidden ? 0 : 1;
      }
      figure.hidden = !here || (narrow && inFigure === 0);
      inSection += inFigure;
      count += inFigure;
    }
    section.hidden = !here || (narrow && inSection === 0);
  }
  document.getElementById("shown").textContent = `${count} claims shown`;
}
boxes.forEach((box) => box.addEventListener("change", show));
search.addEventListener("input", show);
show();

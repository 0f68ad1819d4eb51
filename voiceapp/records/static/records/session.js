"use strict";

const player = document.querySelector(".voice-player audio");
for (const button of document.querySelectorAll("button[data-seek-ms]")) {
  button.addEventListener("click", () => {
    player.currentTime = Number(button.dataset.seekMs) / 1000;
    player.play();
  });
}

/** The ten-line clients: tabs, and a button that copies the one in view. */

/** @param {string} server ws: or wss: address without a path */
export function showSnippets(server) {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const panel = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
  for (const tab of tabs) {
    const code = panel(tab).firstElementChild;
    code.textContent = code.textContent.replaceAll("SERVER", server);
  }
  const choose = (chosen) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      panel(tab).hidden = tab !== chosen;
    }
  };
  for (const tab of tabs) {
    tab.disabled = false;
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
      choose(next);
      next.focus();
    });
  }
  const copy = document.getElementById("copy");
  copy.disabled = false;
  copy.addEventListener("click", async () => {
    const shown = tabs.find((tab) => tab.tabIndex === 0);
    try {
      await navigator.clipboard.writeText(panel(shown).textContent);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(panel(shown)); // the browser allows no more than this
      copy.textContent = "Selected";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  });
}

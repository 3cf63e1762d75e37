/** Loads the page's program; when a part of it does not come, that is said instead of nothing. */

import("./app.js").catch((error) => {
  console.error(error);
  const byId = (id) => document.getElementById(id);
  byId("link").dataset.state = "closed";
  byId("link-text").textContent = "Not loaded";
  byId("status").textContent = "This page is not complete.";
  byId("notice").hidden = false;
  byId("notice-text").textContent = "A part of this page could not be loaded. Reload it to try again.";
  byId("notice-close").textContent = "Reload";
  byId("notice-close").addEventListener("click", () => location.reload());
});

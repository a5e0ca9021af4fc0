// Runs before the first paint: with a theme that the reader chose, no other one is seen first. A card has that of the page around it.
try {
  const kept = new URLSearchParams(location.search).get('theme') ?? localStorage.getItem('theme')
  if (kept === 'light' || kept === 'dark') document.documentElement.dataset.theme = kept
} catch {
  // A browser may refuse the storage.
}

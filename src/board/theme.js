// Runs before the first paint: with a theme that the reader chose, no other one is seen first.
try {
  const kept = localStorage.getItem('theme')
  if (kept === 'light' || kept === 'dark') document.documentElement.dataset.theme = kept
} catch {
  // A browser may refuse the storage.
}

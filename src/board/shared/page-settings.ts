const { dataset } = document.documentElement

/** Applies the theme that the reader chose before. Without a choice, or without storage, the system's theme applies. */
export function restoreTheme(): void {
  try {
    const kept = localStorage.getItem('theme')
    if (kept === 'light' || kept === 'dark') dataset.theme = kept
  } catch {
    // A browser may refuse the storage.
  }
}

export function toggleTheme(): void {
  const isDark = dataset.theme === undefined ? matchMedia('(prefers-color-scheme: dark)').matches : dataset.theme === 'dark'
  dataset.theme = isDark ? 'light' : 'dark'
  try {
    localStorage.setItem('theme', dataset.theme)
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
}

/** Returns a setting that the server wrote into the page. */
export const pageSetting = (name: string): string => document.querySelector(`meta[name="${name}"]`)?.getAttribute('content') ?? ''

const { dataset } = document.documentElement

/** `theme.js` applies the choice when the page is loaded again. */
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

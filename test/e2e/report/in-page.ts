/** Functions that run in the page: they are sent to the browser as text. */

interface Low {
  readonly text: string;
  readonly ratio: number;
}

/** Texts, bars and control borders below the contrast of WCAG 2.2 AA (1.4.3, 1.4.11), in current colors. */
export const lowContrast = `(() => {
  const channels = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const luminance = (color) => {
    const [r, g, b] = channels(color).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratioOf = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const backgroundOf = (element) => {
    for (let each = element; each !== null; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      const [, , , alpha = 1] = channels(color);
      if (alpha > 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = [];
  const check = (element, color, least, text) => {
    const ratio = ratioOf(color, backgroundOf(element));
    if (!(ratio >= least)) found.push({ text, ratio });
  };
  for (const element of document.body.querySelectorAll('*')) {
    const style = getComputedStyle(element);
    const ownText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ownText && element.checkVisibility()) check(element, style.color, isLarge ? 3 : 4.5, element.textContent.slice(0, 60));
    if (element.tagName === 'rect') check(element.ownerSVGElement.parentElement, style.fill, 3, element.getAttribute('class'));
    if (element.matches('input[type=search], select, button:not(th button)')) check(element.parentElement, style.borderTopColor, 3, element.id);
  }
  return found;
})()`;
export type LowContrast = readonly Low[];

/** The focused element: its name, and whether the focus is visible. */
export const focused = `(() => {
  const element = document.activeElement;
  if (element === document.body) return { name: 'nothing', isVisible: true };
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  return {
    name: element.id || element.textContent.trim().slice(0, 30) || element.getAttribute('aria-label') || element.tagName,
    isVisible: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
  };
})()`;
export interface Focused {
  readonly name: string;
  readonly isVisible: boolean;
}

/** Texts of one column of the large table. */
export function column(index: number): string {
  return `[...document.querySelectorAll('#table tbody tr')].map((row) => row.cells[${index}].textContent)`;
}

export const status = `document.querySelector('#table [role=status]').textContent`;
/** By the label of the column. */
export const sortedBy = `Object.fromEntries([...document.querySelectorAll('#table th')]
  .filter((head) => head.hasAttribute('aria-sort'))
  .map((head) => [head.textContent, head.getAttribute('aria-sort')]))`;

/** Icons of 16 px, as paths on a grid of 24. */
const PATHS = {
  overview: "M3 12h4l3-8 4 16 3-8h4",
  harvest: "M12 3v12m0 0-5-5m5 5 5-5M4 19h16",
  chains: "M6 6h4v4H6zM14 14h4v4h-4zM10 8h4a2 2 0 0 1 2 2v4",
  arrivals: "M4 5h16v14H4zM4 10h16M9 5v14M15 5v14",
  tracking: "M4 6h10M4 12h16M4 18h7",
  lineage: "M5 12h6m0 0 4-6h4m-8 6 4 6h4",
  admin:
    "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM12 3v3m0 12v3M3 12h3m12 0h3M5.600 5.600l2.100 2.100m8.600 8.600 2.100 2.100m0-12.800-2.100 2.100m-8.600 8.600-2.100 2.100",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM21 21l-5-5",
  close: "M6 6l12 12M18 6 6 18",
  menu: "M4 6h16M4 12h16M4 18h16",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  chevron: "M9 6l6 6-6 6",
  retry: "M4 12a8 8 0 1 1 2.500 5.800M4 18v-4h4",
  stop: "M6 6h12v12H6z",
  play: "M7 5l12 7-12 7z",
  download: "M12 4v11m0 0-4-4m4 4 4-4M5 20h14",
  check: "M5 13l4 4L19 7",
  warning: "M12 4 2.500 20h19zM12 10v5m0 2v.5",
  expand: "M8 4H4v4m12-4h4v4M4 16v4h4m12-4v4h-4",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  user: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM5 20c0-4 3-6 7-6s7 2 7 6",
  column: "M4 5h16v14H4zM10 5v14M14 5v14",
  code: "M8 8l-4 4 4 4m8-8 4 4-4 4M14 5l-4 14",
  database: "M4 6c0-4 16-4 16 0v12c0 4-16 4-16 0zM4 6c0 4 16 4 16 0M4 12c0 4 16 4 16 0",
  tag: "M4 4h8l8 8-8 8-8-8zM8 8v.010",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2m0 16v2M2 12h2m16 0h2M5 5l1.500 1.500m11 11L19 19m0-14-1.500 1.500m-11 11L5 19",
} as const;

export type IconName = keyof typeof PATHS;

/** Without a label it is decoration. */
export function Icon({ name, label, size = 16 }: { name: IconName; label?: string; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.800"
      strokeLinecap="round"
      strokeLinejoin="round"
      {...(label === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": label })}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

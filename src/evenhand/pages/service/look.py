"""How the server's pages look, and the content policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib

# Fields that a choice makes pointless are hidden by `:has`, so that no script is needed; browsers without it show all fields.
STYLE = """
*, ::before, ::after { box-sizing: border-box; }
html { color-scheme: light; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: #f4f6f8; color: #1b2733; font: 16px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
a { color: #1f4e79; text-underline-offset: .15em; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; line-height: 1.3; margin: 0 0 .75rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .4rem; overflow-wrap: anywhere; }
p { margin: 0 0 .75rem; }
:focus-visible { outline: 3px solid #b45f00; outline-offset: 2px; border-radius: .2rem; }
.skip { position: absolute; left: -100rem; } .skip:focus { left: 1rem; top: .5rem; background: #fff; padding: .3rem .6rem; z-index: 1; }
header { background: #fff; border-bottom: 1px solid #d5dbe1; }
header > div { max-width: 68rem; margin: 0 auto; padding: .6rem 1.25rem; display: flex; flex-wrap: wrap; gap: .4rem 1.5rem; align-items: center; }
header b { font-size: 1.05rem; letter-spacing: -.01em; }
header nav { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; } header nav a { text-decoration: none; padding: .2rem 0; border-bottom: 2px solid transparent; }
header nav a[aria-current], header nav a:hover { border-bottom-color: #1f4e79; }
header .who { margin-left: auto; display: flex; gap: .8rem; align-items: center; color: #45525f; font-size: .9rem; }
main { overflow-wrap: break-word; max-width: 68rem; margin: 0 auto; padding: 1.75rem 1.25rem 3rem; }
.lead { color: #45525f; margin: -.75rem 0 1.25rem; max-width: 48rem; }
.card { background: #fff; border: 1px solid #d5dbe1; border-radius: .5rem; padding: 1.25rem; margin: 0 0 1.25rem; }
.card > :last-child { margin-bottom: 0; }
.columns { display: grid; gap: 1.25rem; grid-template-columns: minmax(0, 2fr) minmax(0, 1fr); align-items: start; }
.halves { display: grid; gap: 0 1.25rem; grid-template-columns: repeat(2, minmax(0, 1fr)); align-items: end; }
.narrow { max-width: 30rem; }
form { margin: 0; } fieldset { border: 0; margin: 0 0 1rem; padding: 0; min-width: 0; } legend { font-weight: 600; padding: 0; margin-bottom: .25rem; }
label { display: block; margin: 0 0 .9rem; font-weight: 600; font-size: .95rem; } label span { display: block; font-weight: 400; color: #45525f; font-size: .85rem; }
input, select, textarea { font: inherit; font-weight: 400; color: inherit; width: 100%; margin-top: .25rem; padding: .5rem .6rem; background: #fff; border: 1px solid #6b7785; border-radius: .35rem; }
textarea, code, pre { font-family: ui-monospace, "Cascadia Mono", Menlo, monospace; font-size: .9rem; }
button, .button { display: inline-block; font: inherit; font-weight: 600; padding: .5rem 1rem; border: 1px solid #1f4e79; border-radius: .35rem; background: #1f4e79; color: #fff; text-decoration: none; cursor: pointer; }
button:hover, .button:hover { background: #163a5b; } .second { background: #fff; color: #1f4e79; } .second:hover { background: #e9f0f6; }
.small { padding: .2rem .6rem; font-size: .85rem; }
table + .side, table + p, .side + .side { margin-top: 1rem; }
.side { display: flex; gap: .75rem; flex-wrap: wrap; align-items: center; }
.tabs { display: flex; gap: .5rem; margin-bottom: 1rem; border-bottom: 1px solid #d5dbe1; } .tabs a { padding: .4rem .9rem; text-decoration: none; border-bottom: 3px solid transparent; }
.tabs a[aria-current] { border-bottom-color: #1f4e79; font-weight: 600; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .75rem .45rem 0; border-bottom: 1px solid #e3e8ec; }
.long { overflow-wrap: anywhere; } .time { white-space: nowrap; }
thead th { color: #45525f; font-size: .82rem; font-weight: 600; white-space: nowrap; } tbody th { font-weight: 600; }
tbody tr:last-child > * { border-bottom: 0; } .number, .amount { text-align: right; padding-left: .5rem; white-space: nowrap; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.facts td { overflow-wrap: anywhere; } .facts th { width: 11rem; color: #45525f; font-weight: 400; } tr.unusable td { color: #5b6773; }
.big { font-size: 2.6rem; line-height: 1.1; font-weight: 650; letter-spacing: -.02em; margin: 0 0 .25rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.badge { display: inline-block; border-radius: 1rem; padding: .1rem .7rem; font-size: .85rem; font-weight: 600; border: 1px solid currentColor; white-space: nowrap; }
.good { color: #1c6432; background: #edf7f0; } .bad { color: #9a2a1b; background: #fdf1ef; } .wait { color: #7a4a00; background: #fdf6e7; } .plain { color: #45525f; background: #f4f6f8; }
.warning { border-left: .3rem solid #9a2a1b; background: #fdf1ef; padding: .6rem .9rem; border-radius: 0 .35rem .35rem 0; overflow-wrap: anywhere; }
.note { color: #45525f; font-size: .9rem; }
figure { margin: .75rem 0; max-width: 33rem; } figcaption { color: #45525f; font-size: .88rem; margin-top: .35rem; }
svg.picture { display: block; width: 100%; height: auto; } svg.bar { display: block; width: 100%; height: .7rem; border-radius: .35rem; }
.budget { margin: 0 0 1rem; } .budget p { margin: 0 0 .2rem; } .budget .row { display: flex; justify-content: space-between; gap: 1rem; flex-wrap: wrap; }
details summary { cursor: pointer; font-weight: 600; padding: .25rem 0; } pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 .75rem; }
@supports selector(:has(*)) {
  .builder:has([name=ask] option:is([value=count], [value=users]):checked) .of-column { display: none; }
  .builder:has([name=ask] option:is([value=count], [value=users], [value=distinct]):checked) .of-bounds { display: none; }
  .builder:not(:has([name=ask] option[value=quantiles]:checked)) .of-quantiles { display: none; }
  .builder:has([name=by] option[value=""]:checked) .of-groups { display: none; }
}
@media (max-width: 44rem) {
  main { padding: 1.25rem .9rem 2rem; } .card { padding: 1rem; } .columns, .halves { grid-template-columns: minmax(0, 1fr); gap: 0; }
  header .who { margin-left: 0; width: 100%; justify-content: space-between; } .big { font-size: 2.1rem; }
  .stack thead { position: absolute; left: -200rem; } .stack tr, .stack td { display: block; border: 0; padding: .1rem 0; } .stack tr { border-bottom: 1px solid #e3e8ec; padding: .6rem 0; }
  .stack td, .stack .amount, .stack .time { overflow-wrap: anywhere; text-align: left; white-space: normal; } .stack td[data-label]::before { content: attr(data-label) ": "; color: #45525f; }
  .facts tr, .facts th, .facts td { display: block; width: auto; border: 0; padding: 0; } .facts td { padding-bottom: .5rem; }
}
@media print { header, .side, form { display: none; } body { background: #fff; } .card { border: 0; padding: 0; } }
"""

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='3' "
    "fill='%231f4e79'/%3E%3Cpath d='M4 6h8M4 10h8' stroke='white' stroke-width='2'/%3E%3C/svg%3E"
)
_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
"""The content security policy: this style, forms to this server and an icon in the page, and nothing else; no script, no frame."""

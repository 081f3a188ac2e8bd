/** The named entities of HTML 4 (and of XML), for documents whose DTD is not read. dblp, for one, uses those of Latin-1. */

/** In the order of their code points, from U+00A0 on. */
const LATIN_1 =
  "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para " +
  "middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute " +
  "Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute " +
  "THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde " +
  "ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml";
/** From U+0391 and U+03B1 on; a dash where HTML has no name. */
const GREEK =
  "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon Phi Chi Psi Omega";
const OTHERS =
  "OElig=Œ oelig=œ Scaron=Š scaron=š Yuml=Ÿ fnof=ƒ circ=ˆ tilde=˜ sigmaf=ς thetasym=ϑ upsih=ϒ piv=ϖ ensp=\u2002 emsp=\u2003 " +
  "thinsp=\u2009 zwnj=\u200c zwj=\u200d lrm=\u200e rlm=\u200f ndash=– mdash=— lsquo=‘ rsquo=’ sbquo=‚ ldquo=“ rdquo=” bdquo=„ " +
  "dagger=† Dagger=‡ bull=• hellip=… permil=‰ prime=′ Prime=″ lsaquo=‹ rsaquo=› oline=‾ frasl=⁄ euro=€ image=ℑ weierp=℘ real=ℜ " +
  "trade=™ alefsym=ℵ larr=← uarr=↑ rarr=→ darr=↓ harr=↔ crarr=↵ lArr=⇐ uArr=⇑ rArr=⇒ dArr=⇓ hArr=⇔ forall=∀ part=∂ exist=∃ " +
  "empty=∅ nabla=∇ isin=∈ notin=∉ ni=∋ prod=∏ sum=∑ minus=− lowast=∗ radic=√ prop=∝ infin=∞ ang=∠ and=∧ or=∨ cap=∩ cup=∪ int=∫ " +
  "there4=∴ sim=∼ cong=≅ asymp=≈ ne=≠ equiv=≡ le=≤ ge=≥ sub=⊂ sup=⊃ nsub=⊄ sube=⊆ supe=⊇ oplus=⊕ otimes=⊗ perp=⊥ sdot=⋅ " +
  "lceil=⌈ rceil=⌉ lfloor=⌊ rfloor=⌋ lang=〈 rang=〉 loz=◊ spades=♠ clubs=♣ hearts=♥ diams=♦";

/** Without a prototype, since the parser would find `&constructor;` there. */
export const NAMED_ENTITIES: Record<string, string> = Object.assign(
  Object.create(null) as Record<string, string>,
  { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" },
  inOrder(LATIN_1.split(" "), 0xa0),
  inOrder(GREEK.split(" "), 0x391),
  inOrder(GREEK.toLowerCase().split(" "), 0x3b1),
  Object.fromEntries(OTHERS.split(/ (?=\w+=)/).map((pair) => pair.split("=") as [string, string])),
);

function inOrder(names: readonly string[], first: number): Record<string, string> {
  return Object.fromEntries(
    names.map((name, index) => [name, String.fromCodePoint(first + index)]).filter(([name]) => name !== "-"),
  );
}

export { decoded, kindOfAddress } from "./address";
export { CitationChip, CitationsContext, findCitation, type Citation, type CitedLink } from "./cited";
export { CITATIONS } from "./citing";
export { CodeBlock } from "./code";
export { drawImage, idOf, Link, Markdown, NoteLink, parserOf, placeOf, slugOf, textOf, type Draw, type DrawContext, type MarkdownFeature } from "./markdown";
export { nest, readWikilink, type TokenNode, type Wikilink } from "./syntax";

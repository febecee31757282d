export { CitationChip, CITATIONS, CitationsContext, findCitation, type Citation, type CitedLink } from "./cited";
export { CodeBlock } from "./code";
export { decoded, drawImage, idOf, kindOfAddress, Link, Markdown, NoteLink, parserOf, placeOf, slugOf, textOf, type Draw, type DrawContext, type MarkdownFeature } from "./markdown";
export { nest, readWikilink, type TokenNode, type Wikilink } from "./syntax";

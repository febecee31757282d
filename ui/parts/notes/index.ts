export { Attachments, mediaKindOf } from "./media";
export { NoteModel } from "./model";
export { NoteBeside, NoteReader, quoted } from "./reader";
export { compareNames, type NotesStore } from "./store";
export { foldersTo, rowsOf, treeOf } from "./tree";
export { NoteTree } from "./treeview";

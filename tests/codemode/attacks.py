"""List attacks on the sandbox; each leaves its proof in `__result__` or in the world outside, if it succeeds."""

from dataclasses import dataclass

SYS = "import typing\nsys = typing.sys\n"
WIT = SYS + "wit = sys.modules['wit_world']\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Name an attack; ``SECRET`` in it is a file outside, ``TARGET`` one to be made, ``PORT`` a listener's."""

    name: str
    kind: str
    script: str


def _walk(action: str) -> str:
    return (
        "found = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']\n"
        f"names = found[0].__init__.__globals__\n{action}\n"
    )


OBJECTS = {
    "subclasses_to_system": _walk("__result__ = names['system']('touch TARGET')"),
    "subclasses_to_popen": _walk("__result__ = names['popen']('cat SECRET').read()"),
    "subclasses_to_environment": _walk("__result__ = dict(names['environ'])"),
    "builtins_through_globals": "import json\nopened = json.dumps.__globals__['__builtins__']['open']\n"
    "__result__ = opened('SECRET').read()",
    "true_import_through_globals": "import json\nload = json.dumps.__globals__['__builtins__']['__import__']\n"
    "__result__ = load('os').popen('cat SECRET').read()",
    "eval_through_globals": "import re\n__result__ = re.compile.__globals__['__builtins__']['eval']"
    "(\"__import__('os').listdir('/')\")",
    "file_io_subclass": "for c in object.__subclasses__():\n"
    "    if c.__name__ == '_IOBase':\n"
    "        raw = [d for d in c.__subclasses__() if d.__name__ == '_RawIOBase'][0].__subclasses__()\n"
    "        files = [d for d in raw if d.__name__ == 'FileIO']\n"
    "        __result__ = files[0]('SECRET').read().decode()",
    "posix_original": SYS + "posix = sys.modules['posix']\n__result__ = posix.open('SECRET', 0)",
    "frozen_importlib": SYS + "loader = sys.modules['_frozen_importlib_external'].FileLoader('x', 'SECRET')\n"
    "__result__ = loader.get_data('SECRET').decode()",
    "code_object": "def f(): pass\ncode = f.__code__.replace(co_names=('__import__',))\n"
    "f.__code__ = code\n__result__ = type(f)(code, {'__builtins__': {}})()",
    "made_function": "import functools\nF = type(lambda: 0)\n"
    "__result__ = F(functools.reduce.__class__, {}) if False else F((lambda: open('SECRET').read()).__code__, {})()",
    "format_walk": "class A: pass\n__result__ = '{0.__init__.__globals__}'.format(A())",
    "format_to_secrets": "import json\n"
    "__result__ = '{0.__globals__[codecs].builtins.open}'.format(json.detect_encoding)",
    "format_map": "class M(dict):\n    def __missing__(self, key): return obsidian\n"
    "__result__ = '{x._host._call.__globals__}'.format_map(M())",
    "host_function_globals": "__result__ = str(obsidian._host._call)\n"
    "__result__ += str(vars(obsidian._host._call) if hasattr(obsidian._host._call, '__dict__') else '')",
}
FRAMES = {
    "traceback_frames": "try:\n    1/0\nexcept Exception as e:\n    f = e.__traceback__.tb_frame\n"
    "    while f.f_back: f = f.f_back\n    __result__ = f.f_builtins['open']('SECRET').read()",
    "generator_frames": "def g(): yield\nx = g()\n"
    "f = x.gi_frame.f_back or x.gi_frame\n__result__ = f.f_builtins['open']('SECRET').read()",
    "get_frame": SYS + "__result__ = sys._getframe(1).f_globals['os'].popen('cat SECRET').read()",
    "error_object_frames": "try:\n    obsidian.read_note('../x')\nexcept Exception as e:\n"
    "    t = e.__traceback__\n    while t.tb_next: t = t.tb_next\n"
    "    __result__ = str({k: str(v)[:200] for k, v in t.tb_frame.f_globals.items()})",
    "trace_function": SYS + "seen = []\nsys.settrace(lambda f, e, a: seen.append(str(f.f_locals)[:200]))\n"
    "obsidian.read_note('A.md')\nsys.settrace(None)\n__result__ = seen",
    "audit_hook": SYS + "seen = []\nsys.addaudithook(lambda n, a: seen.append(str(a)[:100]))\n"
    "obsidian.read_note('A.md')\n__result__ = seen",
}
IMPORTERS = {
    "import_os": "import os\n__result__ = os.listdir('/')",
    "import_inside_try": "try:\n    import subprocess\nexcept ImportError:\n    subprocess = None\n"
    "__result__ = subprocess and subprocess.run(['cat', 'SECRET'])",
    "dunder_import": "__result__ = __import__('os').environ",
    "importlib_from_modules": SYS + "il = sys.modules['importlib']\n__result__ = il.import_module('ctypes').CDLL(None)",
    "socket_from_modules": SYS + "s = sys.modules['importlib'].import_module('_socket').socket()\n"
    "s.connect(('127.0.0.1', PORT))\n__result__ = 'connected'",
    "path_hook": SYS + "sys.path.insert(0, '/')\nsys.meta_path.clear()\n"
    "import collections\n__result__ = sys.modules['importlib'].import_module('secret')",
    "builtin_importer": SYS + "b = sys.modules['_frozen_importlib'].BuiltinImporter\n"
    "spec = b.find_spec('posix')\n__result__ = sys.modules['_frozen_importlib']._load(spec).listdir('/')",
    "pathlib_read": "import pathlib\n__result__ = pathlib.Path('SECRET').read_text()",
    "pathlib_write": "import pathlib\npathlib.Path('TARGET').write_text('x')",
    "pathlib_os": "import pathlib\n__result__ = pathlib.os.listdir('/')",
    "typing_sys_modules": SYS + "__result__ = sys.modules['os'].popen('cat SECRET').read()",
    "yaml_object": "import yaml\n__result__ = yaml.load(\"!!python/object/apply:os.system ['touch TARGET']\", "
    "Loader=yaml.UnsafeLoader)",
    "yaml_loader_class": "import yaml\n__result__ = yaml.unsafe_load(\"!!python/object/new:os.popen ['cat SECRET']\")",
    "yaml_constructor": "import yaml\n"
    "l = yaml.loader.UnsafeLoader(\"!!python/object/apply:os.system ['touch TARGET']\")\n"
    "__result__ = l.get_single_data()",
    "yaml_laughs": "import yaml\nt = 'a: &a [x,x,x,x,x,x,x,x,x]\\n'\nfor i in range(8):\n"
    "    t += f'{chr(98+i)}: &{chr(98+i)} [' + ','.join(['*' + chr(97+i)] * 9) + ']\\n'\n"
    "__result__ = str(yaml.safe_load(t))",
}
HOST = {
    "parent_folder": "__result__ = obsidian.read_note('../secret.txt')",
    "absolute_path": "__result__ = obsidian.read_note('SECRET')",
    "symlink_out": "__result__ = obsidian.read_note('Out.md')",
    "symlinked_folder": "__result__ = [obsidian.list_notes('Outside', recursive=True), "
    "obsidian.read_note('Outside/secret.txt')]",
    "hidden_note": "__result__ = [obsidian.read_note('Private/Hidden.md'), "
    "obsidian.get_frontmatter('Private/Hidden.md'), obsidian.search('hidden', limit=50), "
    "obsidian.list_notes('Private')]",
    "hidden_by_case": "__result__ = [obsidian.read_note('private/hidden.md'), obsidian.read_note('./Private/Hidden'), "
    "obsidian.read_note('A/../Private/Hidden.md')]",
    "nul_in_path": "__result__ = obsidian.read_note('A.md\\0SECRET')",
    "list_outside": "__result__ = obsidian.list_notes('..', recursive=True)",
    "write_outside": "__result__ = obsidian.write_note('../../TARGET', 'x')",
    "write_now": "obsidian.write_note('A.md', 'overwritten')\nobsidian.write_note('New.md', 'new')",
    "file_in_strict": "__result__ = obsidian.read_file('SECRET')",
    "file_past_the_object": "__result__ = obsidian._host('read_file', {'path': 'SECRET'})",
    "net_in_strict": "__result__ = obsidian._host('http_get', {'url': 'http://127.0.0.1:PORT/'})",
    "unknown_method": "__result__ = obsidian._host('__class__', {})",
    "attribute_method": "__result__ = obsidian._host('_vault', {'name': 'x'})",
    "tool_that_writes": "__result__ = obsidian.tools.delete_file(path='A.md')",
    "tool_of_a_person": "__result__ = obsidian._host('tools.accept_proposal', {'proposal_id': '1'})",
    "other_vault": "__result__ = obsidian.read_note('A.md', vault='../other')",
    "bad_types": "out = []\nfor a in ({'path': 1}, {'path': None}, {'path': ['A.md']}, {'path': {}}, {}, {'x': 1}):\n"
    "    try: out.append(obsidian._host('read_note', a))\n    except Exception as e: out.append(str(e))\n"
    "__result__ = out",
    "huge_limit": "__result__ = len(obsidian.search('note', limit=10**18))",
    "huge_number": "__result__ = obsidian._host('search', {'query': 'x', 'limit': 10**300})",
    "not_a_number": "__result__ = obsidian._host('search', {'query': 'x', 'limit': float('inf')})",
    "half_a_character": "__result__ = obsidian.read_note('\\ud800')",
    "huge_argument": "__result__ = obsidian.read_note('x' * 60_000_000)",
    "deep_argument": "x = []\nfor i in range(900): x = [x]\n__result__ = obsidian._host('read_note', {'path': x})",
    "deep_frontmatter": "x = 'v'\nfor i in range(100): x = {'k': x}\n"
    "__result__ = obsidian.write_note('Deep.md', 'x', frontmatter=x)",
    "many_calls": "n = 0\nwhile True:\n    try: obsidian.get_hash('A.md')\n    except obsidian.Error: n += 1",
    "many_proposals": "for i in range(500): obsidian.write_note(f'N{i}.md', 'x')",
}
PROTOCOL = {
    "raw_garbage": WIT + "__result__ = wit.call('garbage')",
    "raw_empty": WIT + "__result__ = wit.call('')",
    "raw_other_shape": WIT + "__result__ = wit.call('[1]') + wit.call('{\"method\": 1, \"arguments\": 2}')",
    "raw_nan": WIT + '__result__ = wit.call(\'{"method": "get_hash", "arguments": {"path": NaN}}\')',
    "raw_pickle": WIT + "__result__ = wit.call('\\x80\\x04cposix\\nsystem\\n')",
    "raw_deep": WIT + "__result__ = wit.call('[' * 400_000)",
    "raw_long_number": WIT
    + '__result__ = wit.call(\'{"method": "search", "arguments": {"limit": \' + \'9\' * 500_000 + \'}}\')',
    "raw_huge": WIT + "__result__ = wit.call('x' * 100_000_000)",
    "raw_huge_output": WIT + "for i in range(50): wit.emit('x' * 50_000_000)",
    "output_flood": "while True: print('x' * 1000)",
    "forged_outcome": WIT + 'wit.emit(\'{"kind": "ok", "result": 1}\')\nprint(\'D\\x05\\x00\\x00\\x00hello\')',
    "forged_kind": SYS + "r = sys.modules['knapper.codemode.guest.results']\n"
    'r.encode = lambda *a: \'{"kind": "owner", "error": 7}\'',
    "forged_huge_result": SYS + "r = sys.modules['knapper.codemode.guest.results']\n"
    'r.encode = lambda *a: \'{"kind": "ok", "result": "\' + \'x\' * 30_000_000 + \'"}\'',
    "forged_deep_result": SYS + "r = sys.modules['knapper.codemode.guest.results']\n"
    "r.encode = lambda *a: '{\"kind\": \"ok\", \"result\": ' + '[' * 50_000 + ']' * 50_000 + '}'",
    "no_job_end": SYS + "i = sys.modules['knapper.codemode.guest.interpreter']\ni._run = lambda *a: None",
}
LIMITS = {
    "endless_loop": "while True: pass",
    "loop_that_swallows": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "endless_in_c": "sum(iter(int, 1))",
    "catastrophic_regex": "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
    "huge_power": "__result__ = 9 ** 9 ** 9",
    "huge_factorial": "import math\n__result__ = math.factorial(10**8)",
    "huge_text_number": "__result__ = 10 ** 5_000_000",
    "huge_range": "__result__ = list(range(10**10))",
    "huge_text": "__result__ = 'x' * 10**10",
    "doubling": "x = 'x'\nwhile True: x += x",
    "many_small": "x = []\nwhile True: x.append(bytearray(100_000))",
    "swallowed_memory": "x = []\nwhile True:\n    try:\n        while True: x.append(bytearray(1_000_000))\n"
    "    except MemoryError: pass",
    "recursion": "def f(): return f()\nf()",
    "recursion_without_limit": SYS + "sys.setrecursionlimit(10**9)\ndef f(): return f()\nf()",
    "deep_structure": "x = []\nfor i in range(200_000): x = [x]\n__result__ = x",
    "deep_repr": "x = []\nfor i in range(200_000): x = [x]\n__result__ = repr(x)",
    "deep_source": "__result__ = " + "(" * 500 + "1" + ")" * 500,
    "deep_source_unary": "__result__ = " + "-" * 20_000 + "1",
    "circle": "x = []\nx.append(x)\n__result__ = x",
    "large_result": "__result__ = 'x' * 2_000_000",
    "hostile_result": "class D(dict):\n    def items(self):\n        while True: yield 'a', 1\n__result__ = D(a=1)",
    "hostile_error": "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
    "hostile_exit": SYS + "sys.exit('x' * 1_000_000)",
    "abort": SYS + "sys.modules['posix'].abort()",
    "destructor": "class A:\n    def __del__(self):\n        while True: pass\na = A()\ndel a",
    "threads": SYS + "t = sys.modules['importlib'].import_module('_thread')\nt.start_new_thread(lambda: None, ())",
    "fork": SYS + "__result__ = sys.modules['posix'].fork()",
    "hash_flood": "x = {str(i): i for i in range(10**8)}",
}
LEFTOVERS = {
    "poisoned_module": "import json\njson.dumps = lambda *a, **k: 'POISON'\nimport re\nre.findall = None",
    "poisoned_builtins": SYS + "b = sys.modules['builtins']\nb.len = lambda x: 'POISON'\nb.POISON = 1",
    "poisoned_guest": SYS + "sys.modules['knapper.codemode.guest.rules'].ALLOWED = ('os',)\n"
    "sys.modules['knapper.codemode.guest.interpreter'].POISON = 1",
    "left_over_name": "POISON = 1\nimport json\njson.POISON = 1\nobsidian.POISON = 1",
    "changed_clock": SYS + "sys.modules['time'].time = lambda: 0",
}
DISCLOSURE = {
    "environment": SYS + "__result__ = {k: v for k, v in sys.modules['os'].environ.items()}",
    "arguments": SYS + "__result__ = [sys.argv, sys.executable, sys.prefix, sys.path, sys.platform]",
    "paths_in_errors": "try:\n"
    "    obsidian.read_note('/nonexistent/x')\nexcept Exception as e:\n    __result__ = str(e)",
    "paths_of_storage": "out = []\nfor p in ('A.md/x', 'x' * 300, '.', '', 'Folder', 'Loop.md'):\n"
    "    try: out.append(obsidian.read_note(p))\n    except Exception as e: out.append(str(e))\n__result__ = out",
    "uncaught_host_error": "obsidian.read_note('Out.md')",
    "clock": "import datetime\n__result__ = str(datetime.datetime.now())",
    "process": SYS + "__result__ = [sys.modules['posix'].getpid(), sys.modules['posix'].uname()]",
    "addresses": "__result__ = [id(object()), hash('x')]",
}
EVERY = (
    "def every(*hostile):\n    told = []\n    texts = [('search', 'query'), ('search', 'path_filter'), "
    "('search', 'type_filter'), ('search', 'vault'), ('read_note', 'path'), ('read_note', 'vault'), "
    "('list_notes', 'directory'), ('get_frontmatter', 'path'), ('get_hash', 'path'), ('create_wikilink', 'path'), "
    "('write_note', 'path'), ('write_note', 'content'), ('write_note', 'note_type')]\n"
    "    usual = {'search': {'query': 'x'}, 'write_note': {'path': 'N.md', 'content': 'x'}}\n"
    "    for text in hostile:\n        for method, name in texts:\n"
    "            try: told.append(obsidian._host(method, {**usual.get(method, {}), name: text}))\n"
    "            except Exception as e: told.append(str(e)[:200])\n    return told\n"
)
AMPLIFIED = {
    "one_note_many_times": "__result__ = len(obsidian.read_notes(['./' * i + 'Big.md' for i in range(900)]))",
    "again_and_again": "paths = ['./' * i + 'Big.md' for i in range(900)]\nwhile True:\n"
    "    try: obsidian.read_notes(paths)\n    except obsidian.Error: pass",
    "one_vault_under_two_names": "__result__ = obsidian.search('big', limit=200, vaults=['main', 'v'] * 400)",
    "tools_with_huge_arguments": "told = []\nfor name in obsidian._host('tools', {}):\n"
    "    for value in ('x' * 900_000, 2**62, -(2**62), ['Big.md'] * 90_000, {'a' * 900_000: 1}):\n"
    "        try: told.append(str(obsidian._host('tools.' + name, {'': [value] * (1 + 2 * (value == 2**62))}))[:99])\n"
    "        except Exception as e: told.append(str(e)[:99])\n__result__ = told",
    "tool_of_a_huge_name": "__result__ = getattr(obsidian.tools, 'x' * 900_000)(path='A.md')",
    "aliases_in_properties": "names = ('Bomb', 'Circle', 'Deep')\n"
    "__result__ = [obsidian.get_frontmatter(f'Odd/{n}.md') for n in names]",
    "properties_of_all_kinds": "__result__ = [obsidian.get_frontmatter('Odd/Kinds.md'), "
    "obsidian.tools.note_info(path='Odd/Kinds.md')]",
}
LATE = {
    "generator_that_never_ends_its_end": "def g():\n    try: yield\n    finally:\n        while True: pass\n"
    "x = g()\nnext(x)\n__result__ = 1",
    "coroutine_that_is_never_awaited": "class A:\n    def __await__(self):\n        while True: yield\n"
    "async def f():\n    try: await A()\n    finally: await A()\nx = f()\nx.send(None)\n__result__ = 1",
    "last_words": SYS + "r = sys.modules.get('atexit') or sys.modules['importlib'].import_module('atexit')\n"
    "def f():\n    while True: pass\nr.register(f)\n__result__ = 1",
    "hook_of_what_cant_be_raised": SYS + "def f(*a):\n    while True: pass\nsys.unraisablehook = sys.excepthook = f\n"
    "class A:\n    def __del__(self): raise ValueError\nA()\nraise ValueError",
    "output_that_never_flushes": SYS + "class O:\n    def write(self, t): return 0\n    def flush(self):\n"
    "        while True: pass\nsys.stdout = sys.stderr = O()\nprint('x', flush=True)",
    "module_that_changes_its_mind": SYS + "import collections\nclass M(type(collections)):\n    n = 0\n"
    "    def __getattribute__(self, name):\n        M.n += 1\n        return obsidian if M.n % 2 else 1\n"
    "sys.modules['__main__'].__class__ = M\n__result__ = 1",
    "result_that_asks_while_it_is_told": "from collections.abc import Mapping\nclass M(Mapping):\n"
    "    def __getitem__(self, key): return obsidian.read_note('A.md')\n"
    "    def __iter__(self):\n        while True: yield obsidian.get_hash('A.md')\n    def __len__(self): return 1\n"
    "__result__ = M()",
    "result_that_grows": "import enum\nclass E(enum.Enum):\n    A = 1\nclass L(list):\n    def __iter__(self):\n"
    "        while True: yield 'x' * 1000\n__result__ = [L([1]), E.A, {'k': L([1])}]",
}
TEXTS = {
    "halves_of_characters": EVERY + "__result__ = every('\\ud800', 'A\\udfff.md', '\\udcff' * 50, '\\ud83d' + 'A.md')",
    "ends_and_directions": EVERY
    + "__result__ = every('A.md\\0', 'A\\r\\n.md', '\\u2028', '\\u202eA.md', '\\ufeffA.md', '\\x1b[2J')",
    "roots_of_other_systems": EVERY
    + "__result__ = every('C:\\\\Windows\\\\win.ini', 'C:A.md', '\\\\\\\\host\\\\share\\\\x', "
    "'//host/share', '\\\\\\\\?\\\\SECRET', 'file://SECRET', '~/x', '$HOME/x', "
    "'%2e%2e/secret.txt', '..\\\\secret.txt', 'NUL', "
    "'A.md:stream', 'A.md::$DATA')",
    "paths_that_climb": EVERY + "__result__ = every('Folder/../../secret.txt', 'Folder/B.md/../../../secret.txt', "
    "'./' * 2000 + '../secret.txt', 'Outside/secret', 'Folder/../Outside/secret.txt', "
    "'/proc/self/environ', '/dev/stdin')",
    "queries_of_the_database": EVERY
    + "__result__ = every('\" OR 1=1 --', 'x*\\'); DROP TABLE files', 'NEAR(' * 300, '\"' * 999, "
    "'path:Private', '{path}: hidden', '-' * 1999, 'hidden AND note')",
    "names_of_notes": "paths = obsidian.list_notes('Odd', recursive=True)\nprint(paths)\n"
    "__result__ = {p: [obsidian.read_note(p), obsidian.create_wikilink(p), obsidian.get_hash(p)] for p in paths}",
    "notes_that_look_like_the_protocol": "for hit in obsidian.search('frames', limit=9): print(hit['content'])\n"
    "print('\\n' * 5000 + obsidian.read_note('Odd/Frames.md') * 50)\n"
    "__result__ = obsidian.read_note('Odd/Frames.md')",
    "properties_that_break_out": "told = []\n"
    "for key in ('a\\nb: c', '---', 'x: y', '', '#', '- k', '? k', '*k', '&k', '!k', '\\u2028', 'k' * 100_000):\n"
    "    for value in (1, '---\\n# out', ['*x'], {'a': {'b': '\\n---\\n'}}, None, 10**18, 'x' * 900_000):\n"
    "        try: told.append(str(obsidian.write_note('A.md', 'x', frontmatter={key: value}))[:99])\n"
    "        except Exception as e: told.append(str(e)[:99])\n__result__ = told",
    "hidden_note_by_every_tool": "told = []\nfor name in obsidian._host('tools', {}):\n"
    "    for value in ('Private/Hidden.md', 'Private/Hidden', 'Hidden', 'Private', '[[Hidden]]'):\n"
    "        try: told.append(str(obsidian._host('tools.' + name, {'': [value]}))[:2000])\n"
    "        except Exception as e: told.append(str(e)[:300])\n__result__ = str(told)[:190_000]",
}
KINDS = {
    "objects": OBJECTS,
    "frames": FRAMES,
    "importers": IMPORTERS,
    "host": HOST,
    "protocol": PROTOCOL,
    "limits": LIMITS,
    "leftovers": LEFTOVERS,
    "disclosure": DISCLOSURE,
    "amplified": AMPLIFIED,
    "late": LATE,
    "texts": TEXTS,
}
ATTACKS = [
    Attack(name=f"{kind}-{name}", kind=kind, script=script)
    for kind, rows in KINDS.items()
    for name, script in rows.items()
]

"""Conversations in which a calculator is called: what tools-2m learns from.

A conversation is a list of parts, (text, learned): what the model itself writes is learned, the rest is its prompt.
Numbers, wording, tools beside the calculator and their descriptions vary, so that the model reads the question and
the results and little else.  `held_out` numbers are those of the test: they never occur in the training.
"""
import json
import random

BEGIN, END = "<|im_start|>", "<|im_end|>"

CALCULATOR = {
    "name": "calculator",
    "description": "Evaluate an arithmetic expression: + - * / // % ** and parentheses; sqrt, log, exp, sin, cos, tan, "
                   "abs, round, floor, ceil, min, max, factorial, gcd, lcm; pi and e.",
    "parameters": {"type": "object", "properties": {"expression": {
        "type": "string", "description": "for example (17 + 4) * 2"}}, "required": ["expression"]}}


def tool(name, description, key, note=None):
    return {"name": name, "description": description, "parameters": {
        "type": "object", "properties": {key: {"type": "string", **({"description": note} if note else {})}},
        "required": [key]}}


OTHERS = [
    tool("think", "Write down a thought: a plan, or what the results so far mean. It has no effect and finds nothing "
                  "out.", "thought"),
    tool("file_read", "Read a text file of the workspace, or list a directory of it (\".\" is the workspace itself).",
         "path", note="relative to the workspace"),
    tool("shell", "Run a command with sh in the workspace and return its output. There is no network.", "command"),
    tool("python", "Run Python 3 code in the workspace and return what it prints. There is no network.", "code",
         note="must print its results"),
    tool("http_get", "Fetch a URL with GET and return the body of the response.", "url"),
    tool("final_answer", "Gives the final answer to the problem.", "answer"),
    tool("get_weather", "Returns the weather of a city.", "city"),
]
WORDS = """a an and answer any are arguments as at be by call can city code compute data do each evaluate every example
expression file find first following for format from function get give given helpful if in input is it its json last list
math message name need not number object of on once one only or other output path plan please problem question read
result results return returns run search should solve step string take task text that the them then these this to tool
tools up use user using value values web what when which with write you your""".split()
SYSTEMS = ["You are a helpful assistant.", "Answer with the result only.", "Answer briefly.", "Be brief and correct.",
           "You solve short tasks. Give the answer and nothing else.", "Use the calculator for every computation.",
           "You are a careful agent. Use the tools that you are given.", "You are an agent that calls tools."]

NAMES = ["Ann", "Tom", "Eva", "Jim", "Mia", "Leo", "Sam", "Zoe", "Ben", "Ida"]
THINGS = ["apples", "books", "cups", "keys", "maps", "balls", "pens", "coins", "tokens", "cards"]
ASK = ["What is {}?", "What is {}?", "Compute {}.", "Calculate {}.", "How much is {}?", "Evaluate {}",
       "Use the calculator: what is {}?", "Please compute {}.", "{} = ?", "What's {}?", "{}"]


class Maker:
    def __init__(self, seed, is_test):
        self.random, self.is_test = random.Random(seed), is_test

    def number(self, digits=None):
        """A tenth of the numbers belongs to the test."""
        while True:
            size = digits or self.random.choice([1, 2, 2, 2, 3, 3, 4, 5, 6])
            value = self.random.randrange(10 ** (size - 1) if size > 1 else 0, 10 ** size)
            if size < 3 or (value * 2654435761 % 2 ** 32 % 10 == 0) == self.is_test:
                return value

    def chain(self):
        """An expression without parentheses."""
        sign = self.random.choice("++--**")
        a, b = self.number(), self.number()
        if self.random.random() < 0.3:
            return f"{a} {self.random.choice('+-')} {b} {self.random.choice('+-')} {self.number()}"
        return f"{a} {sign} {b}"

    def spoken(self):
        a, b = self.number(), self.number()
        word, sign = self.random.choice([("plus", "+"), ("minus", "-"), ("times", "*"), ("multiplied by", "*")])
        return f"{a} {word} {b}", f"{a} {sign} {b}"

    def problem(self):
        """(question, turns, answer): a turn is a list of expressions; {} in one is the result of the turn before."""
        kind = self.random.choices(["one", "spoken", "two", "boxes", "both", "gives"], [6, 3, 4, 2, 3, 2])[0]
        ask = self.random.choice(ASK)
        if kind == "one":
            chain = self.chain()
            return ask.format(chain), [[chain]], "{0}"
        if kind == "spoken":
            words, chain = self.spoken()
            return ask.format(words), [[chain]], "{0}"
        if kind == "two":
            a, b, c = self.number(), self.number(), self.number(self.random.choice([1, 2, 2, 3]))
            sign = self.random.choice("+-")
            return ask.format(f"({a} {sign} {b}) * {c}"), [[f"{a} {sign} {b}"], [f"{{}} * {c}"]], "{0}"
        name, thing = self.random.choice(NAMES), self.random.choice(THINGS)
        if kind == "boxes":
            a, b, c = self.number(2), self.number(2), self.number(self.random.choice([2, 3]))
            return (f"{name} has {c} {thing} and buys {a} boxes with {b} {thing} each. How many {thing} does {name} "
                    f"have now?", [[f"{a} * {b}"], [f"{c} + {{}}"]], "{0}")
        if kind == "both":
            first, second = self.chain(), self.chain()
            form = self.random.choice(["What are {} and {}?", "Compute {} and {}.", "Calculate {} and also {}."])
            return form.format(first, second), [[first, second]], "{0} and {1}"
        a, b = self.number(3), self.number(2)
        return (f"{name} has {a} {thing} and gives {b} of them away. How many {thing} are left?", [[f"{a} - {b}"]], "{0}")

    def words(self, most):
        return " ".join(self.random.choices(WORDS, k=self.random.randrange(3, most))).capitalize() + "."

    def tools(self):
        calculator, others = json.loads(json.dumps(CALCULATOR)), self.random.sample(OTHERS, self.random.choice(
            [0, 0, 0, 0, 1, 2, 3]))
        if self.random.random() < 0.4:
            calculator["description"] = self.words(30)
        if self.random.random() < 0.3:
            calculator["parameters"]["properties"]["expression"].pop("description")
        tools = others + [calculator]
        self.random.shuffle(tools)
        return tools

    def system(self):
        """None, one of a person's, or the tools' descriptions as the template writes them."""
        lines = []
        if self.random.random() < 0.4:
            lines.append(self.random.choice(SYSTEMS) if self.random.random() < 0.5 else self.words(40))
        if self.random.random() < 0.75:
            lines.append(describe(self.tools(), self.random.random() < 0.5))
        return "\n\n".join(lines)

    def conversation(self):
        question, turns, answer = self.problem()
        system, spaced = self.system(), self.random.random() < 0.3
        parts = [(f"{BEGIN}system\n{system}{END}\n" if system else "", False),
                 (f"{BEGIN}user\n{question}{END}\n", False)]
        results = []
        for number, expressions in enumerate(turns):
            expressions = [expression.format(*results) for expression in expressions]
            is_error = self.random.random() < 0.01
            results = ["error: the result is too large" if is_error else str(eval(e)) for e in expressions]
            # How a server writes a call that was made may differ from how the model wrote it.
            calls = "\n".join(call(expression, spaced) for expression in expressions)
            parts += [(f"{BEGIN}assistant\n", False), (f"{calls}{END}", not spaced), ("\n", False),
                      (f"{BEGIN}user\n" + "\n".join(f"<tool_response>\n{r}\n</tool_response>" for r in results)
                       + f"{END}\n", False)]
            if is_error:
                results, answer = [], "It cannot be computed."
                break
        return parts + [(f"{BEGIN}assistant\n", False), (answer.format(*results) + END, True)]


def describe(tools, spaced):
    separators = (", ", ": ") if spaced else (",", ":")
    lines = [json.dumps({"type": "function", "function": tool}, separators=separators) for tool in tools]
    return ("# Tools\n\nYou can call functions to help with the question. Their signatures are given in "
            "<tools></tools>:\n<tools>\n" + "".join(line + "\n" for line in lines) +
            "</tools>\n\nTo call a function, write a JSON object with its name and arguments in <tool_call></tool_call>:\n"
            "<tool_call>\n{\"name\": <function name>, \"arguments\": <object of arguments>}\n</tool_call>")


def call(expression, spaced=False):
    separators = (", ", ": ") if spaced else (",", ":")
    text = json.dumps({"name": "calculator", "arguments": {"expression": expression}}, separators=separators)
    return f"<tool_call>\n{text}\n</tool_call>"

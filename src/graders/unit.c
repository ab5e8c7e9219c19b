/* Units by a table of their spellings; a unit per another one is two of them. */
#include "graders/unit.h"

#include <ctype.h>
#include <string.h>

#include "core/err.h"
#include "graders/tokens.h"

/* One unit per line, its spellings between spaces. */
static const char *const UNITS[] = {
    " mm millimeter millimeters millimetre millimetres ",
    " cm centimeter centimeters centimetre centimetres ",
    " m meter meters metre metres ",
    " km kilometer kilometers kilometre kilometres ",
    " in inch inches ",
    " ft foot feet ",
    " yd yard yards ",
    " mi mile miles ",
    " mg milligram milligrams ",
    " g gram grams ",
    " kg kilogram kilograms ",
    " oz ounce ounces ",
    " lb lbs pound pounds ",
    " t ton tons tonne tonnes ",
    " ml milliliter milliliters millilitre millilitres ",
    " l liter liters litre litres ",
    " s sec secs second seconds ",
    " min mins minute minutes ",
    " h hr hrs hour hours ",
    " day days ",
    " week weeks ",
    " month months ",
    " yr year years ",
    " cent cents ",
    " dollar dollars ",
    " degree degrees ° ",
    " percent % ",
    " j joule joules ",
    " kj kilojoule kilojoules ",
    " w watt watts ",
    " kw kilowatt kilowatts ",
    " v volt volts ",
    " n newton newtons ",
    " pa pascal pascals ",
    " kpa kilopascal kilopascals ",
    " k kelvin kelvins ",
};

enum { UNIT_COUNT = COUNT_OF(UNITS), UNKNOWN_UNIT = -1 };

static int unit_of(const struct token *token)
{
    for (int i = 0; i < UNIT_COUNT; i++)
        if (token_in(token, UNITS[i]))
            return i;
    return UNKNOWN_UNIT;
}

/* A quotient of units; "mph" is one, too. */
struct quotient {
    int over, under; /* UNKNOWN_UNIT: none, or not known */
};

static struct quotient quotient_of(struct slice text)
{
    static const struct token MILE = {.kind = TOKEN_WORD, .text = {"mile", 4}},
                              KILOMETER = {.kind = TOKEN_WORD, .text = {"km", 2}},
                              HOUR = {.kind = TOKEN_WORD, .text = {"hour", 4}};
    struct tokens tokens = tokens_of(text);
    struct token token = {0};
    struct quotient out = {UNKNOWN_UNIT, UNKNOWN_UNIT};
    while (token_next(&tokens, &token) && token_in(&token, " \\text \\mathrm { ( $ * \\ , "))
        ;
    if (token_in(&token, " mph "))
        return (struct quotient){unit_of(&MILE), unit_of(&HOUR)};
    if (token_in(&token, " kmh kph "))
        return (struct quotient){unit_of(&KILOMETER), unit_of(&HOUR)};
    out.over = unit_of(&token);
    if (token_next(&tokens, &token) && token_in(&token, " / per ") && token_next(&tokens, &token))
        out.under = unit_of(&token);
    return out;
}

static bool known_and_different(int a, int b)
{
    return a != UNKNOWN_UNIT && b != UNKNOWN_UNIT && a != b;
}

bool units_differ(struct slice a, struct slice b)
{
    struct quotient first = quotient_of(a), second = quotient_of(b);
    return known_and_different(first.over, second.over) ||
           known_and_different(first.under, second.under);
}

bool unit_is_degree(struct slice text)
{
    struct tokens tokens = tokens_of(text);
    struct token token;
    return token_next(&tokens, &token) && token_in(&token, " degree degrees ");
}

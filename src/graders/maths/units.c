#include "graders/maths/units.h"

#include <ctype.h>
#include <stddef.h>

/* One unit a row, its spellings in it. */
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
    " ton tons tonne tonnes ",
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
    " degree degrees ",
    " percent ",
    " mph ",
};

enum { UNKNOWN_UNIT = -1 };

static int unit_of(struct slice word)
{
    char padded[20] = " ";
    if (word.length == 0 || word.length > sizeof padded - 3)
        return UNKNOWN_UNIT;
    for (size_t i = 0; i < word.length; i++)
        padded[i + 1] = (char)tolower((unsigned char)word.start[i]);
    padded[word.length + 1] = ' ';
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (strstr(UNITS[i], padded))
            return (int)i;
    return UNKNOWN_UNIT;
}

bool units_clash(struct slice a, struct slice b)
{
    int first = unit_of(slice_trim(a)), second = unit_of(slice_trim(b));
    return first != UNKNOWN_UNIT && second != UNKNOWN_UNIT && first != second;
}

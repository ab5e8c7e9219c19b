#include "graders/tolerance.h"

#include <math.h>

#include "core/params.h"

enum err tolerance_read(const struct params *params, struct tolerance *out, struct error *why)
{
    *out = (struct tolerance){.given = params_get(params, "rel") || params_get(params, "abs")};
    enum err err = params_number(params, "rel", 1e-6, &out->relative, why);
    if (!err)
        err = params_number(params, "abs", 0, &out->absolute, why);
    if (!err && (out->relative < 0 || out->absolute < 0))
        return err_set(why, ERR_USAGE, "rel and abs: expected 0 or more");
    return err;
}

bool tolerance_holds(const struct tolerance *tolerance, double expected, double value)
{
    if (expected == value)
        return true;
    if (!isfinite(expected) || !isfinite(value))
        return false;
    if (!tolerance->given && expected == floor(expected) && value == floor(value))
        return false;
    return fabs(expected - value) <=
           fmax(tolerance->absolute, tolerance->relative * fabs(expected));
}

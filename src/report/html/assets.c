#include "report/html/sections.h"

#include <stdint.h>
#include <string.h>

#include "core/embed.h"
#include "core/units.h"

EMBED(report_template, IPW_REPORT_WEB "/report.html");
EMBED(report_style, IPW_REPORT_WEB "/report.css");
EMBED(report_base, IPW_REPORT_WEB "/base.js");
EMBED(report_tables, IPW_REPORT_WEB "/tables.js");
EMBED(report_charts, IPW_REPORT_WEB "/charts.js");
EMBED(report_timeline, IPW_REPORT_WEB "/timeline.js");
EMBED(report_answer, IPW_REPORT_WEB "/answer.js");
EMBED(report_sections, IPW_REPORT_WEB "/sections.js");
EMBED(report_sweep, IPW_REPORT_WEB "/sweep.js");
EMBED(report_agent, IPW_REPORT_WEB "/agent.js");
EMBED(report_page, IPW_REPORT_WEB "/page.js");
EMBED(report_echarts, IPW_ECHARTS "/echarts.min.js");
EMBED(report_notice, IPW_ECHARTS "/NOTICE");      /* ECharts requires its notice, */
EMBED(report_license, IPW_ECHARTS "/LICENSE-d3"); /* and the license of its third-party part */

static const struct {
    const char *name, *begin, *end;
} EMBEDDED[] = {
    {"style", report_style, report_style_end},
    {"base.js", report_base, report_base_end},
    {"tables.js", report_tables, report_tables_end},
    {"charts.js", report_charts, report_charts_end},
    {"timeline.js", report_timeline, report_timeline_end},
    {"answer.js", report_answer, report_answer_end},
    {"sections.js", report_sections, report_sections_end},
    {"sweep.js", report_sweep, report_sweep_end},
    {"agent.js", report_agent, report_agent_end},
    {"page.js", report_page, report_page_end},
    {"echarts", report_echarts, report_echarts_end},
    {"echarts-notice", report_notice, report_notice_end},
    {"echarts-license", report_license, report_license_end},
};

static struct asset between(const char *begin, const char *end)
{
    /* As integers: to the compiler the two are different objects. */
    return (struct asset){begin, (size_t)((uintptr_t)end - (uintptr_t)begin)};
}

struct asset asset_template(void)
{
    return between(report_template, report_template_end);
}

struct asset asset_find(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT_OF(EMBEDDED); i++)
        if (strlen(EMBEDDED[i].name) == length && memcmp(EMBEDDED[i].name, name, length) == 0)
            return between(EMBEDDED[i].begin, EMBEDDED[i].end);
    return (struct asset){NULL, 0};
}

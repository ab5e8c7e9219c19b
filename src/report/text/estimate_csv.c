#include "core/csv.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_report.h"
#include "report/text/estimate_words.h"

void estimate_csv(const struct estimate_report *report, struct text *out)
{
    const struct workload *work = report->outcome->work;
    text_add(out, "name,ops,phase,layer,level,flops,bytes,latency_s,energy_j,compute_j,memory_j,"
                  "static_j,link_j,utilisation,bound\n");
    for (size_t i = 0; i < report->row_count; i++) {
        const struct subgraph_total *row = &report->rows[i];
        const struct subgraph *subgraph = row->subgraph;
        csv_add(out, subgraph->name);
        text_add(out, ",");
        csv_add(out, subgraph->pattern);
        text_addf(out, ",%s",
                  !work->spec.model->has_phases ? "whole"
                  : row->phase == GRAPH_DECODE  ? "decode"
                                                : "prefill");
        words_csv_number(out, subgraph->layer == GRAPH_NONE ? UNKNOWN : (double)subgraph->layer);
        words_csv_number(out, subgraph->level);
        const double figures[] = {row->flops,        row->bytes,          row->latency_s,
                                  row->joules.total, row->joules.compute, row->joules.memory,
                                  row->joules.idle,  row->joules.link,    row->utilisation};
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
            words_csv_number(out, figures[k]);
        text_addf(out, ",%s\n", estimate_bound_name(row->bound));
    }
}

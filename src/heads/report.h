/* Layer 10, private: the files of src/heads/page/ as the Makefile builds them in, each ended by a 0 byte. */
#ifndef HW_HEADS_REPORT_H
#define HW_HEADS_REPORT_H

extern const unsigned char hw_page_page_html[], hw_page_style_css[], hw_page_base_js[], hw_page_data_js[],
    hw_page_words_js[], hw_page_charts_js[], hw_page_matrix_js[], hw_page_grid_js[], hw_page_card_js[],
    hw_page_explorer_js[], hw_page_table_js[], hw_page_experiments_js[], hw_page_sections_js[], hw_page_main_js[];

#endif

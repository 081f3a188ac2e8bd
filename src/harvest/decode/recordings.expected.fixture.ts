/**
 * What each recorded answer is, counted with other parsers than ours (Python's `json` and expat) and compared with the notes of
 * the recordings. A line has the file, the kind (recordings.kinds.fixture.ts), and either an action of the classifier or:
 * the number of items; `end`, `next=` and the first characters of a token, or `single` for kinds without pages; the announced
 * `total`; how many are `deleted` and `quarantined`; and `keys`, the first characters of a sha256 of the keys.
 */
export interface Expected {
  file: string;
  kind: string;
  action: string;
  items?: number;
  next?: string;
  total?: number;
  deleted?: number;
  quarantined?: number;
  keys?: string;
}

const TABLE = `
arxiv/503-then-200-01.txt                         arxiv                RATE_LIMITED
arxiv/503-then-200-02.xml                         arxiv                2 end keys=c6042097
arxiv/arxivraw-1810.09584.xml                     oai-record           1 single keys=761edac5
arxiv/err-iddoesnotexist-200.xml                  arxiv-record         IGNORE_EMPTY
arxiv/getrecord-1607.06746.xml                    arxiv-record         1 single keys=4953f870
arxiv/identify-export.xml                         oai-identify         1 single keys=2d546634
arxiv/listrecords-cs-old.xml                      arxiv                46 end keys=dac07d35
arxiv/listrecords-hep-th-2025-07-01.xml           arxiv                95 end keys=2089ef3d
arxiv/listsets-export.xml                         oai-sets             21 end keys=77288d21
biorxiv/details-biorxiv-2024.json                 biorxiv              100 single total=60568 keys=4fe4f576
biorxiv/rss-genomics-2018.xml                     rss                  30 single keys=24bb16ea
clinicaltrials/ct2-results-all.xml                trials-xml           126 single total=126 keys=870582ab
clinicaltrials/study-NCT00763412.json             trial                1 single keys=0bd0c0b6
clinicaltrials/study-NCT00973089.json             trial                1 single keys=a2e8ee65
clinicaltrials/study-NCT03630471.json             trial                1 single keys=996240bb
crossref-events/walk-events-01.json               crossref-events      0 end total=355 keys=e3b0c442
crossref-events/walk-events-02.json               crossref-events      25 next=34e5233f-dd8 total=355 keys=bce259ab
crossref-events/walk-events-03.json               crossref-events      25 next=c8aaebf0-a6f total=355 keys=92921c7a
crossref-events/walk-events-04.json               crossref-events      25 next=e486dd1a-d77 total=355 keys=a51275d4
crossref-events/walk-events-05.json               crossref-events      25 next=f78b0092-379 total=355 keys=b78408bc
crossref-events/walk-events-06.json               crossref-events      25 next=8585f39e-717 total=355 keys=9497fc25
crossref-events/walk-events-07.json               crossref-events      25 next=5d1634fd-e64 total=355 keys=4d90b189
crossref-events/walk-events-08.json               crossref-events      25 next=4787737e-ec5 total=355 keys=5ec0a1d3
crossref-events/walk-events-09.json               crossref-events      25 next=975bdaee-dad total=355 keys=ab60577d
crossref-events/walk-events-10.json               crossref-events      25 next=e8f38ef2-6d3 total=355 keys=8a325e8f
crossref-events/walk-events-11.json               crossref-events      25 next=df292974-166 total=355 keys=6914b912
crossref-events/walk-events-12.json               crossref-events      25 next=da3055bd-851 total=355 keys=c0c7af66
crossref-events/walk-events-13.json               crossref-events      25 next=79d550f9-347 total=355 keys=cd60550d
crossref-events/walk-events-14.json               crossref-events      25 next=c0fb781d-321 total=355 keys=d2182cd2
crossref-events/walk-events-15.json               crossref-events      25 next=5d91bf35-341 total=355 keys=de7ce891
crossref-events/walk-events-16.json               crossref-events      5 next=aa939d62-1e4 total=355 keys=849faeae
crossref/abstract-jats.json                       crossref-work        1 single keys=244d1e8e
crossref/count-rows0-cursor-star-2021.json        crossref-list        0 next=* total=17739 keys=e3b0c442
crossref/cursor-2021-solr-token.json              crossref-list        25 next=AoJw0Lzrwe8C total=17739 keys=22d77dba
crossref/doi-filter-2026-07.json                  crossref-list        1 next=DnF1ZXJ5VGhl total=1 keys=7c45f796
crossref/err-400-filter.json                      crossref-list        FAIL
crossref/err-400-parameter.json                   crossref-list        FAIL
crossref/err-400-rows.json                        crossref-list        FAIL
crossref/err-400-sort.json                        crossref-list        FAIL
crossref/err-404-cursor-invalid-2026.json         crossref-list        RESTART_SLICE
crossref/err-404-plain.txt                        crossref-work        IGNORE_EMPTY
crossref/err-429.html                             crossref-list        RATE_LIMITED
crossref/err-500-cursor-invalid-2022.json         crossref-list        RESTART_SLICE
crossref/facet-issn-rows0.json                    crossref-list        0 end total=851692 keys=e3b0c442
crossref/facet-license-rows0.json                 crossref-list        0 end total=120442564 keys=e3b0c442
crossref/from-index-date.json                     crossref-list        20 end total=411 keys=3fd0c389
crossref/from-update-date-count.json              crossref-list        0 end total=222977 keys=e3b0c442
crossref/from-update-date-sample.json             crossref-list        20 end total=222977 keys=7d4e7d13
crossref/plus-pool-2025.json                      crossref-list        1 end total=2509115 keys=1a11a0ee
crossref/polite-array-list-2026-07.json           crossref-list        20 end total=1205 keys=109ae0f7
crossref/polite-single-2-2026-07.json             crossref-work        1 single keys=c8e0b9be
crossref/polite-single-2026-07.json               crossref-work        1 single keys=2a60f81e
crossref/public-single-2026-03.json               crossref-work        1 single keys=3170b06a
crossref/redirect-http-to-https-301.html          crossref-list        FAIL
crossref/sample0-means-default.json               crossref-list        20 end total=139378504 keys=1b4feb08
crossref/select-doi-title.json                    crossref-list        20 end total=586628 keys=b42d6de1
crossref/select-members-markup.json               crossref-list        20 end total=151093 keys=e41290fd
crossref/select-newline-markup.json               crossref-list        20 end total=483777 keys=eb0e65a3
crossref/short-page-19-of-20.json                 crossref-list        19 end total=336022 keys=5dea672b
crossref/walk-journal-article-2022-01.json        crossref-list        30 next=DnF1ZXJ5VGhl total=96753348 keys=cfd0b535
crossref/walk-journal-article-2022-02.json        crossref-list        30 next=DnF1ZXJ5VGhl total=96753348 keys=84a74435
crossref/walk-journal-article-2022-03.json        crossref-list        30 next=DnF1ZXJ5VGhl total=96753348 keys=749dc046
crossref/walk-widget-01.json                      crossref-list        20 next=DnF1ZXJ5VGhl total=454 keys=f9bab7dd
crossref/walk-widget-02.json                      crossref-list        20 next=DnF1ZXJ5VGhl total=454 keys=ddb8fd71
crossref/walk-widget-03.json                      crossref-list        20 next=DnF1ZXJ5VGhl total=454 keys=acb5cfd3
crossref/walk-widget-again-01.json                crossref-list        20 next=DnF1ZXJ5VGhl total=454 keys=43a93982
crossref/walk-widget-again-02.json                crossref-list        20 next=DnF1ZXJ5VGhl total=454 keys=53247ec1
crossref/work-author-literal.json                 crossref-work        1 single keys=b1ea7610
crossref/work-author-organisation.json            crossref-work        1 single keys=9163904e
crossref/work-entity-title.json                   crossref-work        1 single keys=9b192eae
crossref/work-markup-newline-title.json           crossref-work        1 single keys=d33016ab
crossref/work-title-empty-array.json              crossref-work        1 single keys=8fd25724
crossref/work-updated-by.json                     crossref-work        1 single keys=e1a1a578
crossref/year-window-2026-07.json                 crossref-list        25 next=DnF1ZXJ5VGhl total=927429 keys=11396bd9
datacite/activities-page.json                     datacite-activities  10 next=page%5Bnumbe total=36498458 keys=c7e842e1
datacite/dois-count.json                          datacite             0 end total=321 keys=e3b0c442
datacite/dois-list.json                           datacite             25 next=affiliation= total=321 keys=ee0ab720
datacite/dois-page.json                           datacite             5 next=page%5Bnumbe total=18666188 keys=09a6dbca
datacite/err-404.json                             datacite             FAIL
europepmc/err-not-open-access-2026.xml            europepmc-xml        FAIL
europepmc/search-20614e48-2026.json               europepmc            5 end total=5 keys=c057d0b6
europepmc/search-3b4da36e-2026.json               europepmc            1 end total=1 keys=10c5c39f
europepmc/search-7beaf0a4-2026.json               europepmc            6 end total=6 keys=dbe89771
europepmc/search-ba037a15-2026.json               europepmc            1 end total=1 keys=075f9168
europepmc/search-core-2026.json                   europepmc            3 next=AoIIQYg13Sg1 total=993768 keys=2e2151b8
europepmc/search-idlist.json                      europepmc            25 next=AoIIP4ZawSg1 total=5059039 keys=f6a90477
europepmc/search-lite.json                        europepmc            25 next=AoIIP4ZawSg1 total=5059039 keys=f6a90477
europepmc/search-lite.xml                         europepmc-xml        25 next=AoIIP4ZawSg1 total=5059039 keys=4b996cfa
europepmc/search-no-results.json                  europepmc            0 end total=0 keys=e3b0c442
europepmc/search-sorted.json                      europepmc            25 next=AoIGAAAAACc5 total=5059039 keys=be7b36a4
europepmc/walk-cancer-01.json                     europepmc            100 next=AoIIP4T93Cg1 total=5059039 keys=c15f2626
europepmc/walk-cancer-02.json                     europepmc            100 next=AoIIP4QUSig1 total=5059039 keys=9363a85f
europepmc/walk-cancer-03.json                     europepmc            100 next=AoIIP4OKzyg1 total=5059039 keys=4ddafbc3
europepmc/walk-cancer-04.json                     europepmc            100 next=AoIIP4Mocig1 total=5059039 keys=f34061cd
europepmc/walk-cancer-05.json                     europepmc            100 next=AoIIP4LVaSg1 total=5059039 keys=3bbf8999
europepmc/walk-cancer-06.json                     europepmc            100 next=AoIIP4KTiig1 total=5059039 keys=0fabd624
europepmc/walk-citations-2016-01.json             europepmc-citations  25 single total=810 keys=78e7a8eb
europepmc/walk-citations-2016-02.json             europepmc-citations  25 single total=810 keys=5b0c07f4
europepmc/walk-citations-2016-03.json             europepmc-citations  25 single total=810 keys=e7d21901
europepmc/walk-citations-2016-04.json             europepmc-citations  25 single total=810 keys=70e9bfaf
oai/alma-identifiers-01.xml                       oai-identifiers      100 next=2017-01-01@2 keys=2bb59f73
oai/alma-identifiers-02.xml                       oai-identifiers      10 end keys=b55b5dcf
oai/bhl-no-xml-declaration.xml                    oai-records          42 end keys=5543ed70
oai/cds-marcxml-2026.xml                          oai-records          2 end keys=631fa392
oai/cyberleninka-cyrillic.xml                     oai-records          54 end keys=b321e5b9
oai/dash-deleted.xml                              oai-records          20 end deleted=1 keys=73bd9e5e
oai/e-periodica-2026-identify.xml                 oai-identify         1 single keys=88131813
oai/err-badverb.xml                               oai-records          FAIL
oai/escholarship-after-301.xml                    oai-records          6 end keys=90eb1439
oai/krex-replacement-characters.xml               oai-records          18 end keys=e2f60b48
oai/mit-deleted-listidentifiers.xml               oai-identifiers      1 end deleted=1 keys=9d8b9420
oai/mit-err-500-empty.txt                         oai-record           RETRY
oai/mit-identifiers-170-01.xml                    oai-identifiers      100 next=oai_dc/2022- total=170 keys=e826d36e
oai/mit-identifiers-170-02.xml                    oai-identifiers      70 end total=170 keys=8db1b223
oai/mit-identifiers-171-01.xml                    oai-identifiers      100 next=oai_dc/2022- total=171 keys=9c98b70d
oai/mit-identifiers-171-02.xml                    oai-identifiers      71 end total=171 keys=5a67f44a
oai/mit-norecordsmatch.xml                        oai-identifiers      IGNORE_EMPTY
oai/nature-count-off-by-one.xml                   oai-records          173 end total=174 keys=df5a5f3c
oai/ncar-content-type-html-latin1.xml             oai-records          1 end keys=a0054511
oai/noaa.xml                                      oai-records          5 end keys=bed673b8
oai/puc-rio-not-well-formed.xml                   oai-records          5 end total=5 keys=c6c67013
oai/purdue-302.html                               oai-records          FAIL
oai/purdue-after-302.xml                          oai-records          1 end keys=37d3af06
oai/sldr-double-escaped.xml                       oai-records          1 end keys=d8f1493d
oai/tdar.xml                                      oai-records          24 end keys=a8ed9582
oai/umontreal-french.xml                          oai-records          41 end keys=6c841f2f
oai/walk-asu-01.xml                               oai-records          50 next=cursor%3D50% deleted=1 keys=7c49d63e
oai/walk-asu-02.xml                               oai-records          29 end keys=2b40a3cb
oai/walk-calpoly-01.xml                           oai-records          100 next=374206/oai_d total=208 keys=37ef2f70
oai/walk-calpoly-02.xml                           oai-records          100 next=374206/oai_d total=208 keys=9b9d7cb8
oai/walk-calpoly-03.xml                           oai-records          8 end total=208 keys=5d48c839
oai/walk-dataverse-deleted-01.xml                 oai-records          10 next=142988788682 total=19 deleted=9 keys=26b4e97a
oai/walk-dataverse-deleted-02.xml                 oai-records          9 end deleted=6 keys=45a37964
oai/walk-dryad-01.xml                             oai-records          100 next=2015-05-14T0 keys=8350a440
oai/walk-dryad-02.xml                             oai-records          100 next=2015-05-14T0 keys=43f70091
oai/walk-dryad-03.xml                             oai-records          94 end keys=e4d0b460
oai/walk-mla-01.xml                               oai-records          25 next=oai_dc.f(201 keys=1e9d7b56
oai/walk-mla-02.xml                               oai-records          25 next=oai_dc.f(201 keys=803c7239
oai/walk-mla-03.xml                               oai-records          25 next=oai_dc.f(201 keys=9ce014eb
oai/walk-mla-04.xml                               oai-records          25 next=oai_dc.f(201 keys=5867b265
oai/walk-mla-05.xml                               oai-records          25 next=oai_dc.f(201 keys=b062ef53
oai/walk-mla-06.xml                               oai-records          25 next=oai_dc.f(201 keys=1d1afb68
oai/walk-mla-07.xml                               oai-records          25 next=oai_dc.f(201 keys=29ac0334
oai/walk-mla-08.xml                               oai-records          25 next=oai_dc.f(201 keys=ff765b0e
oai/walk-mla-09.xml                               oai-records          25 next=oai_dc.f(201 keys=9a014f0d
oai/walk-mla-10.xml                               oai-records          25 next=oai_dc.f(201 keys=d44db8c6
oai/walk-mla-11.xml                               oai-records          25 next=oai_dc.f(201 keys=70bf4cf3
oai/walk-mla-12.xml                               oai-records          25 next=oai_dc.f(201 keys=272c29ea
oai/walk-mla-13.xml                               oai-records          19 next=oai_dc.f(201 keys=6225c053
oai/walk-mla-14.xml                               oai-records          IGNORE_EMPTY
oai/walk-pmc-01.xml                               oai-records          50 next=oai%3Apubmed keys=fb9526d7
oai/walk-pmc-02.xml                               oai-records          50 next=oai%3Apubmed keys=5f45eb72
oai/walk-pmc-03.xml                               oai-records          50 next=oai%3Apubmed keys=7362c8b2
oai/walk-pmc-04.xml                               oai-records          50 next=oai%3Apubmed keys=59c1bc1f
oai/walk-pmc-05.xml                               oai-records          50 next=oai%3Apubmed keys=45f73c26
oai/walk-pmc-06.xml                               oai-records          50 next=oai%3Apubmed keys=9927a112
oai/walk-pmc-07.xml                               oai-records          50 next=oai%3Apubmed keys=5be463ef
oai/walk-pmc-08.xml                               oai-records          50 next=oai%3Apubmed keys=9f45b0cb
oai/walk-pmc-09.xml                               oai-records          50 next=oai%3Apubmed keys=705a43fc
oai/walk-pmc-10.xml                               oai-records          50 next=oai%3Apubmed keys=eddfb8ab
oai/walk-pmc-11.xml                               oai-records          50 next=oai%3Apubmed keys=a5cf8086
oai/walk-pmc-12.xml                               oai-records          50 next=oai%3Apubmed keys=d69e64e7
oai/walk-pmc-13.xml                               oai-records          50 next=oai%3Apubmed keys=b8e575ee
oai/walk-pmc-14.xml                               oai-records          50 next=oai%3Apubmed keys=ba4705f1
oai/walk-pmc-15.xml                               oai-records          50 next=oai%3Apubmed keys=52ca1d75
oai/walk-pmc-16.xml                               oai-records          50 next=oai%3Apubmed keys=9a34b440
oai/walk-pmc-17.xml                               oai-records          44 end keys=d4783f01
oai/walk-swmath-01.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=0ffc070e
oai/walk-swmath-02.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=62202365
oai/walk-swmath-03.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=07884ebc
oai/walk-swmath-04.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=c5b66621
oai/walk-swmath-05.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=75f9ea73
oai/walk-swmath-06.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=867bf1e4
oai/walk-swmath-07.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=4238ffcf
oai/walk-swmath-08.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=d6d69d76
oai/walk-swmath-09.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=f5785f7f
oai/walk-swmath-10.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=dc627b17
oai/walk-swmath-11.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=cfdb7126
oai/walk-swmath-12.xml                            oai-identifiers      50 next=rows=50@@sea total=616 keys=6cbc5237
oai/walk-swmath-13.xml                            oai-identifiers      16 end keys=eb8cf30a
oai/walk-tethys-01.xml                            oai-records          3 next=177435798600 total=3 keys=7dfede0c
oai/walk-tethys-02.xml                            oai-records          3 next=177435798700 total=3 keys=7a6dc9bb
oai/walk-tethys-03.xml                            oai-records          3 end keys=1ec501dc
oai/zbmath-norecordsmatch.xml                     oai-identifiers      IGNORE_EMPTY
oai/zenodo-2026-err-422-badprefix.xml             zenodo               FAIL
oai/zenodo-2026-err-422-badtoken.xml              zenodo               RESTART_SLICE
oai/zenodo-2026-err-422-norecordsmatch.xml        zenodo               IGNORE_EMPTY
oai/zenodo-2026-identify.xml                      oai-identify         1 single keys=1ab13263
oai/zenodo-2026-listidentifiers.xml               oai-identifiers      50 next=.eJwljU1zgjA total=1337969 keys=3027c305
oai/zenodo-2026-listrecords.xml                   zenodo               50 next=.eJxNjkFvgjA total=6380 keys=6a5d7717
openalex/cursor-null-on-full-last-page-2026.json  openalex             1 end total=1 keys=a733104a
openalex/err-400-filter-2026.json                 openalex             FAIL
openalex/err-400-select-2026.json                 openalex             FAIL
openalex/err-401-rate-limit.json                  openalex             FAIL
openalex/err-404.html                             openalex-work        IGNORE_EMPTY
openalex/group-by-cursor.json                     openalex-groups      18 next=InN1cHBsZW1l total=145616 keys=465bac4e
openalex/page-2-works-2026.json                   openalex             2 end total=10406111 keys=a6a2945a
openalex/sample-5-2026.json                       openalex             5 end total=5 keys=bce4fa6d
openalex/search-title-2025.json                   openalex             1 end total=1 keys=3827c3e5
openalex/select-ids-count-2.json                  openalex             1 end total=241534 quarantined=1 keys=e3b0c442
openalex/select-ids-count.json                    openalex             1 end total=145616 quarantined=1 keys=e3b0c442
openalex/walk-two-works-01.json                   openalex             2 next=IlsnLUluZmlu total=2 keys=6eff8f51
openalex/walk-two-works-02.json                   openalex             0 end total=2 keys=e3b0c442
openalex/work-dataset-nulls.json                  openalex-work        1 single keys=5119cf5c
openalex/work-journal-article.json                openalex-work        1 single keys=aef8e9ee
openalex/work-missing-contributor.json            openalex-work        1 single keys=19bc7216
openalex/work-select-2026.json                    openalex-work        1 single quarantined=1 keys=e3b0c442
orcid/err-404.json                                orcid                FAIL
orcid/err-500-start.json                          orcid                RETRY
orcid/search-ecology.json                         orcid                100 single total=10242 keys=5c4706e6
orcid/search-none.json                            orcid                0 single total=0 keys=e3b0c442
orcid/search-page1.json                           orcid                3 single total=10242 keys=e03aef54
orcid/search-page2.json                           orcid                3 single total=10242 keys=f544af1e
others/dblp-latin1-doctype-entities.xml           dblp                 4 single keys=8f42e6e1
others/dblp-search.xml                            dblp-search          3 single total=6154 keys=42d2b22f
others/doaj-articles.json                         doaj                 3 next=page=2&pageS total=33928 keys=b7a0ca94
others/openaire-graph-v3.json                     openaire             5 single total=108712 keys=01702c9f
others/zenodo-records.json                        zenodo-rest          3 next=page=2&q=att total=105301 keys=78fe3857
pubmed/efetch-23454700.xml                        efetch               1 single keys=5fc7bd81
pubmed/efetch-27214671.xml                        efetch               1 single keys=79dd1443
pubmed/efetch-30849835.xml                        efetch               1 single keys=98a8643f
pubmed/efetch-34843274.xml                        efetch               1 single keys=405857e8
pubmed/efetch-35354777.xml                        efetch               1 single keys=29124a2e
pubmed/efetch-36987902.xml                        efetch               1 single keys=4c14988e
pubmed/efetch-38534005.xml                        efetch               1 single keys=f57c8627
pubmed/efetch-38833988.xml                        efetch               1 single keys=9e78105c
pubmed/efetch-book-mixed.xml                      efetch               1 single keys=4b2a4cfa
pubmed/efetch-bookarticle.xml                     efetch               1 single keys=501c378e
pubmed/efetch-collective-mixed.xml                efetch               1 single keys=7673f93d
pubmed/efetch-elocation.xml                       efetch               1 single keys=5a8e3e2f
pubmed/efetch-empty-title-vernacular.xml          efetch               1 single keys=0fd8f147
pubmed/efetch-four.xml                            efetch               4 single keys=6be9b65f
pubmed/efetch-investigators-empty-elements.xml    efetch               1 single keys=1de7bcdd
pubmed/efetch-mathml-mixed.xml                    efetch               1 single keys=c745a7f8
pubmed/efetch-mixed-28775130.xml                  efetch               1 single keys=0e1ff1d6
pubmed/efetch-no-articleid-doi.xml                efetch               1 single keys=701cc9c1
pubmed/efetch-pmid-2.xml                          efetch               1 single keys=d4735e3a
pubmed/efetch-pmid-8.xml                          efetch               1 single keys=2c624232
pubmed/efetch-retracted.xml                       efetch               1 single keys=e97cacd9
pubmed/efetch-several-registry-ids.xml            efetch               1 single keys=89005187
pubmed/efetch-three-2017.xml                      efetch               3 single keys=8e73e3a6
pubmed/efetch-two-1.xml                           efetch               2 single keys=8399a672
pubmed/efetch-unknown-ids-empty-set.xml           efetch               0 single keys=e3b0c442
pubmed/epost.xml                                  epost                1 next=MCID_692851c keys=6b86b273
pubmed/err-200-invalid-uid.xml                    esummary             FAIL
pubmed/err-400-efetch-timeout.xml                 efetch               RETRY
pubmed/err-414.html                               efetch               FAIL
pubmed/err-einfo-db.xml                           efetch               FAIL
pubmed/err-epost-db.xml                           epost                FAIL
pubmed/err-esearch-db.xml                         esearch-xml          FAIL
pubmed/err-esummary-no-id.xml                     esummary             FAIL
pubmed/err-rate-limit-body-2026.json              esearch-json         RATE_LIMITED
pubmed/esearch-json-2017.json                     esearch-json         108 single total=108 keys=4d5c1ccb
pubmed/esearch-json-all-ids-2017.json             esearch-json         3027 single total=3027 keys=3f88cb0a
pubmed/esearch-json-one-hit-2026.json             esearch-json         1 single total=1 keys=b625a932
pubmed/esearch-json-past-end-2017.json            esearch-json         0 single total=3027 keys=e3b0c442
pubmed/esearch-json-phrase-not-found-2026.json    esearch-json         100 single total=40362 keys=a66f567a
pubmed/esearch-json-zero-hits-2026.json           esearch-json         0 single total=0 keys=e3b0c442
pubmed/esearch-xml-errorlist.xml                  esearch-xml          20 single total=5163 keys=d673d9b0
pubmed/esearch-xml-history.xml                    esearch-xml          100 single total=42249 keys=f4762688
pubmed/esearch-xml-pmc-2000ids.xml                esearch-xml          2000 single total=203062 keys=d17c32eb
pubmed/esearch-xml-pmc-200ids.xml                 esearch-xml          200 single total=220255 keys=74bc06fc
pubmed/esearch-xml-pmc.xml                        esearch-xml          5 single total=5 keys=70ca289d
pubmed/esearch-xml-reldate.xml                    esearch-xml          8 single total=8 keys=4cd8e4e3
pubmed/esearch-xml-retmax-100000.xml              esearch-xml          1141 single total=1141 keys=0a119d93
pubmed/esearch-xml-retstart.xml                   esearch-xml          6 single total=2651 keys=0a1958c0
pubmed/esummary-v1.xml                            esummary             2 single keys=89dc804d
pubmed/pair-attention-efetch.xml                  efetch               3 single keys=6c2745c3
pubmed/pair-attention-esearch.json                esearch-json         3 single total=115258 keys=6c2745c3
pubmed/pair-bibliometric-efetch-medline.txt       efetch               RETRY
pubmed/pair-bibliometric-esearch.json             esearch-json         25 single total=30839 keys=c66ad3bf
pubmed/pair-livak-efetch-medline.txt              efetch               RETRY
pubmed/pair-livak-esearch.json                    esearch-json         2 single total=2 keys=05b9fa1b
pubmed/pmc-efetch-jats-2026.xml                   pmc-efetch           1 single keys=9b013006
pubmed/redirect-301.html                          efetch               FAIL
pubmed/update-file-with-deletecitation.xml.gz     efetch               176 single keys=bf20d836
semanticscholar/batch-null-entries.json           s2-batch             4 single quarantined=1 keys=b16617e4
semanticscholar/err-400.json                      s2-bulk              FAIL
semanticscholar/err-403.json                      s2-bulk              FAIL
semanticscholar/references-2026.json              s2-references        59 end quarantined=5 keys=487f1e5b
semanticscholar/search-empty.json                 s2-search            0 end total=0 keys=e3b0c442
semanticscholar/walk-bulk-asc-01.json             s2-bulk              1000 next=PCOA3RZRB2AC total=3027 keys=dee07444
semanticscholar/walk-bulk-asc-02.json             s2-bulk              1000 next=PCOA3RZRB2AC total=3027 keys=9dc82290
semanticscholar/walk-bulk-asc-03.json             s2-bulk              1000 next=PCOA3RZ3B2AD total=3027 keys=ed672979
semanticscholar/walk-bulk-asc-04.json             s2-bulk              27 end total=3027 keys=14a72405
semanticscholar/walk-search-01.json               s2-search            100 next=100 total=70498 keys=89e1adac
semanticscholar/walk-search-02.json               s2-search            100 next=200 total=70498 keys=2ede60da
`;

export const EXPECTED: readonly Expected[] = TABLE.trim().split("\n").map(rowOf);

function rowOf(line: string): Expected {
  const [file = "", kind = "", first = "", ...rest] = line.split(/ +/);
  if (!/^\d+$/.test(first)) return { file, kind, action: first };
  const row: Expected = { file, kind, action: "OK", items: Number(first), deleted: 0, quarantined: 0 };
  for (const word of rest) {
    const [name = "", value = ""] = word.split(/=(.*)/s);
    if (name === "keys" || name === "next") row[name] = value;
    else if (name === "end" || name === "single") row.next = name;
    else if (name === "total" || name === "deleted" || name === "quarantined") row[name] = Number(value);
  }
  return row;
}

"""A synthetic crawl with known truth: articles on the templates of six sites, some of them mirrored on another site.

The template of a site is several times as long as an article, so the visible text of two pages of
one site is similar whatever the articles are, and that of an article and its mirror is not.
"""

from __future__ import annotations

import random

NUM_PAGES = 400
NUM_MIRRORS = 40
_TEMPLATES = (
    # HTML5
    '<header class="site"><h2>{name}</h2><p>{words[0]}</p></header><nav><ul>{links[0]}</ul></nav>'
    "<main><article><h1>{title}</h1>{paragraphs}</article></main>"
    "<aside><h3>{words[1]}</h3><ul>{links[1]}</ul></aside><footer><p>{words[2]}</p><ul>{links[2]}</ul></footer>",
    # a blog
    '<div id="page"><div id="masthead" class="site-header"><div class="site-branding">{name} {words[0]}</div>'
    '<div class="main-navigation"><ul>{links[0]}</ul></div></div>'
    '<div id="primary" class="content-area"><div class="entry-header"><h1>{title}</h1></div>'
    '<div class="entry-content">{paragraphs}</div></div>'
    '<div id="secondary" class="widget-area sidebar"><ul>{links[1]}</ul><p>{words[1]}</p></div>'
    '<div id="colophon" class="site-footer"><p>{words[2]}</p><ul>{links[2]}</ul></div></div>',
    # a grid
    '<div class="navbar"><a href="/">{name}</a><ul>{links[0]}</ul></div><div class="container"><div class="row">'
    '<div class="col-md-8 content"><h1>{title}</h1>{paragraphs}</div>'
    '<div class="col-md-4 sidebar"><h4>{words[0]}</h4><ul>{links[1]}</ul></div></div></div>'
    '<div class="footer"><p>{words[1]}</p><p>{words[2]}</p><ul>{links[2]}</ul></div>',
    # an encyclopedia
    '<div id="content" role="main"><h1 id="firstHeading">{title}</h1><div id="bodyContent">{paragraphs}</div></div>'
    '<div id="mw-navigation"><div role="navigation"><h3>{name}</h3><ul>{links[0]}</ul></div>'
    '<div role="navigation"><h3>{words[0]}</h3><ul>{links[1]}</ul></div></div>'
    '<div id="footer" role="contentinfo"><ul>{links[2]}</ul><p>{words[1]} {words[2]}</p></div>',
    # documentation
    '<div class="related" role="navigation"><h3>{name}</h3><ul>{links[0]}</ul></div>'
    '<div class="document"><div class="body" role="main"><h1>{title}</h1>{paragraphs}</div></div>'
    '<div class="sphinxsidebar" role="navigation"><p>{words[0]}</p><ul>{links[1]}</ul></div>'
    '<div class="footer">{words[1]} {words[2]} <ul>{links[2]}</ul></div>',
    # a newspaper
    '<div class="cookie-banner"><p>{words[0]}</p></div><header><div class="logo">{name}</div>'
    '<nav class="menu"><ul>{links[0]}</ul></nav></header><section><article class="story"><h1>{title}</h1>{paragraphs}'
    '</article></section><aside class="related"><p>{words[1]}</p><ul>{links[1]}</ul></aside>'
    "<footer><p>{words[2]}</p><ul>{links[2]}</ul></footer>",
)


def _words(rng, count):
    return " ".join(
        "".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(3, 9))) for _ in range(count)
    )


def _links(rng, count):
    return "".join(
        f'<li><a href="/{_words(rng, 1)}">{_words(rng, 3)}</a></li>' for _ in range(count)
    )


def crawl(seed=1):
    """Return (id, page) of every page, and which page each mirror copies, by id."""
    rng = random.Random(seed)
    sites = [
        {
            "name": _words(rng, 3),
            "words": [_words(rng, 90) for _ in range(3)],
            "links": [_links(rng, 60) for _ in range(3)],
        }
        for _ in _TEMPLATES
    ]

    def page(site, article):
        head = (
            f"<html><head><title>{article['title']}</title><style>p {{margin: 1em}}</style></head>"
        )
        return f"{head}<body>{_TEMPLATES[site].format(**sites[site], **article)}</body></html>"

    pages = []
    articles = []
    for number in range(NUM_PAGES - NUM_MIRRORS):
        paragraphs = "".join(
            f"<p>{_words(rng, 25).capitalize()}.</p>" for _ in range(rng.randint(2, 4))
        )
        articles.append({"title": _words(rng, 6), "paragraphs": paragraphs})
        pages.append((f"page-{number}", page(number % len(sites), articles[-1])))
    mirrors = {}
    for number, copied in enumerate(rng.sample(range(len(articles)), NUM_MIRRORS)):
        mirrors[f"mirror-{number}"] = f"page-{copied}"
        other = (copied + rng.randint(1, len(sites) - 1)) % len(sites)
        pages.append((f"mirror-{number}", page(other, articles[copied])))
    return pages, mirrors

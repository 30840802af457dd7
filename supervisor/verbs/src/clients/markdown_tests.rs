//! Output for hostile Markdown: tags of a few forms, and text without tags.

use std::time::{Duration, Instant};

use regex::Regex;

use super::*;

/// All allowed forms of a tag. Any other `<` is a hole.
const TAGS: &str = concat!(
    r#"^(?:</?(?:p|h[1-6]|blockquote|pre|ul|li|em|strong|del|table|thead|tbody|tr|th|td|code)>"#,
    r#"|</(?:ol|a)>|<ol(?: start="[0-9]+")?>|<(?:br|hr) />"#,
    r#"|<code class="language-[A-Za-z0-9_+#.-]{1,32}">"#,
    r#"|<input disabled="" type="checkbox"(?: checked="")?/>"#,
    r#"|<a href="(?i:https?://|mailto:)[^"<>\s]*"(?: title="[^"<>]*")? target="_blank" rel="noopener noreferrer nofollow">)"#,
);

#[track_caller]
fn require_safe(text: &str, html: &str) {
    let tags = Regex::new(TAGS).unwrap();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        let tag = tags.find(rest).unwrap_or_else(|| panic!("{text:?} gives {html:?}: a tag at {rest:?}"));
        rest = &rest[tag.end()..];
    }
    // What stands between the tags is text to every browser.
    let texts = Regex::new("<[^>]*>").unwrap().replace_all(html, "").into_owned();
    assert!(!texts.contains(['<', '>']), "{text:?} gives {html:?}");
    let entity = Regex::new("&(?:amp|lt|gt|quot|#x27|#39);").unwrap();
    assert!(!entity.replace_all(&texts, "").contains('&'), "{text:?} gives {html:?}");
}

#[track_caller]
fn html(text: &str) -> String {
    let html = rendered(text).unwrap();
    require_safe(text, &html);
    html
}

/// Attacks that worked against other renderers.
const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "text <img src=x onerror=alert(1)> text",
    "<svg onload=alert(1)>",
    "<svg><script>alert&#40;1)</script>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<object data=javascript:alert(1)>",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content=0;url=javascript:alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<form action=javascript:alert(1)><button>x</button></form>",
    "<details open ontoggle=alert(1)>",
    "<style>@import 'javascript:alert(1)'</style>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "<!-- --><script>alert(1)</script>",
    "<!--><script>alert(1)</script>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version=\"1.0\"?><script>alert(1)</script>",
    "<div\nonmouseover=alert(1)>x</div>",
    "<x onfocus=alert(1) tabindex=1 autofocus>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](java\\\nscript:alert(1))",
    "[x](&#x0A;javascript:alert(1))",
    "[x](&#1;javascript:alert(1))",
    "[x](<java\tscript:alert(1)>)",
    "[x](<\u{0}javascript:alert(1)>)",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "[x](blob:http://localhost/1)",
    "[x](//evil.example)",
    "[x](/api/v1/tasks)",
    "[x](#id)",
    "[x](http://evil.example/\"onmouseover=\"alert(1))",
    "[x](http://evil.example/'onmouseover='alert(1))",
    "[x](<http://evil.example/ onmouseover=alert(1)>)",
    "[x](http://evil.example \"t\\\" onmouseover=\\\"alert(1)\")",
    "[x](http://evil.example 't\" onmouseover=\"alert(1)')",
    "[x](http://evil.example/&quot;onmouseover=&quot;alert(1))",
    "![x](javascript:alert(1))",
    "![x\" onerror=\"alert(1)](http://evil.example/x.png)",
    "![<img src=x onerror=alert(1)>](http://evil.example/x.png)",
    "![a [b](http://one.example)](http://two.example)",
    "[![x](http://one.example/x.png)](http://two.example)",
    "<javascript:alert(1)>",
    "<http://evil.example/\"onmouseover=\"alert(1)>",
    "<a@b.example>",
    "[x]\n\n[x]: javascript:alert(1)",
    "[x]\n\n[x]: http://evil.example '<script>alert(1)</script>'",
    "`<script>alert(1)</script>`",
    "```<script>alert(1)</script>\n<script>alert(1)</script>\n```",
    "```\"onmouseover=\"alert(1)\nx\n```",
    "```js onmouseover=alert(1)\nx\n```",
    "~~~ </code></pre><script>alert(1)</script>\nx\n~~~",
    "    <script>alert(1)</script>",
    "# <script>alert(1)</script> {#id .class onclick=alert(1)}",
    "| <script> | x |\n|:--|--:|\n| alert(1) | </script> |",
    "- [x] <input onfocus=alert(1) autofocus>",
    "[^1]\n\n[^1]: <script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\<script>alert(1)\\</script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "*<b*>onclick=alert(1)<*b>*",
    "\u{202e}<script>alert(1)</script>",
    "{{constructor.constructor('alert(1)')()}}",
    "<table><tr><td background=javascript:alert(1)>",
    "---\ntitle: <script>alert(1)</script>\n---",
    "$<script>alert(1)</script>$",
];

#[test]
fn nothing_of_hostile_text_is_a_tag() {
    for text in HOSTILE {
        html(text);
        // In every place where a text can stand.
        for around in ["> ", "- ", "1. ", "# ", "| a |\n|---|\n| "] {
            html(&format!("{around}{text}"));
        }
        html(&format!("**{text}** ~~{text}~~ [{text}](http://x.example) ![{text}](http://x.example)"));
    }
}

#[test]
fn whatever_is_put_together_of_pieces_is_safe() {
    let pieces = [
        "<script>",
        "</p>",
        "[",
        "](",
        ")",
        "javascript:",
        "http://x",
        "\"",
        "'",
        "`",
        "```",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "| ",
        "|---|\n",
        "![",
        "*",
        "_",
        "~~",
        "&#60;",
        "<!--",
        "-->",
        "\\",
        "<a href=",
        ">",
        " onclick=x ",
    ];
    let mut seed = 17_u64;
    for _ in 0..3000 {
        let mut text = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[usize::try_from(seed >> 33).unwrap() % pieces.len()]);
        }
        html(&text);
    }
}

#[test]
fn what_people_write_looks_as_they_mean_it() {
    let link = |to: &str, text: &str| {
        format!("<a href=\"{to}\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">{text}</a>")
    };
    assert_eq!(
        html("**a** _b_ ~~c~~ `d`"),
        "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d</code></p>\n"
    );
    assert_eq!(
        html("[x](https://a.example/?q=1&r=2)"),
        format!("<p>{}</p>\n", link("https://a.example/?q=1&amp;r=2", "x"))
    );
    assert_eq!(
        html("<ann@b.example>"),
        format!("<p>{}</p>\n", link("mailto:ann@b.example", "ann@b.example"))
    );
    assert_eq!(
        html("![map](http://a.example/m.png)"),
        format!("<p>{}</p>\n", link("http://a.example/m.png", "image: map"))
    );
    assert_eq!(html("[x](javascript:1)"), "<p>x</p>\n", "the text of a link that leads nowhere stays");
    assert_eq!(
        html("```rust\nfn f() {}\n```"),
        "<pre><code class=\"language-rust\">fn f() {}\n</code></pre>\n"
    );
    assert_eq!(html("3. a\n4. b"), "<ol start=\"3\">\n<li>a</li>\n<li>b</li>\n</ol>\n");
    assert!(html("|a|b|\n|:-|-:|\n|1|2|").contains("<td>1</td><td>2</td>"));
    assert!(html("- [x] done").contains("type=\"checkbox\""));
    assert_eq!(html("a <b>c</b>"), "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n");
}

#[test]
fn a_text_that_grows_or_nests_without_end_is_bounded() {
    let begun = Instant::now();
    let deep = html(&"> ".repeat(20_000));
    assert!(deep.matches("<blockquote>").count() <= DEEPEST, "{}", deep.len());
    html(&"- ".repeat(20_000));
    html(&"[".repeat(50_000));
    html(&"*a ".repeat(50_000));
    html(&"![".repeat(20_000));
    html(&"<".repeat(100_000));
    html(&"`a``".repeat(20_000));
    let links = format!("{}\n\n[x]: http://a.example/{}", "[x]".repeat(20_000), "y".repeat(2_000));
    html(&links);
    assert!(rendered(&"- x\n\n".repeat(LONGEST / 5)).is_none_or(|html| html.len() <= LONGEST_HTML));
    assert_eq!(rendered(&"\"&".repeat(LONGEST)), None);
    // Generous: what is quadratic takes minutes.
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn a_text_of_more_tags_than_a_browser_lays_out_at_once_is_not_rendered() {
    assert!(rendered(&"*a* ".repeat(4000)).is_some());
    assert!(rendered(&"*a* ".repeat(6000)).is_none());
    assert!(rendered(&"- a\n".repeat(6000)).is_none());
}

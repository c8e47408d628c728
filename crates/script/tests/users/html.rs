//! `k6/html`, and what responses do with HTML; the expectations are what k6 gives for the same page.

use squall_plan::Body;
use squall_script::Outcome;

use crate::drive::{iterate, reply};

const PAGE: &str = r##"<html><head><title>T</title></head><body id="b" class="x y">
<a href="/rel?q=1#h" data-num="12" data-some-json='{"a":1}' data-t="true">one</a><p>two <b>bold</b></p>
<form action="/f" method="post"><input name="n" value="v"><input type="checkbox" name="c" checked><input type="radio" name="r" value="1"><input type="submit" name="s" value="go">
<select name="sel"><option value="o1">1</option><option selected>2</option></select><select multiple name="m"><option selected value="a"></option><option selected value="b"></option></select><textarea name="t">te<xt</textarea><button name="bt" value="bv">B</button></form>
<ul><li>1</li><li class="s">2</li><li>3</li></ul></body></html>"##;

/// The JSON of an expression over `doc`, the parsed page.
fn json(expression: &str) -> String {
    let source = format!(
        "import http from 'k6/http';
         export default function () {{
           const doc = http.get('http://h.example/d/page').html();
           console.log(String(JSON.stringify({expression})));
         }}"
    );
    let run = iterate(&source, 1, |_| reply(200, &[], PAGE));
    assert!(matches!(run.outcome, Outcome::Done(_)), "{expression}: {:?}", run.outcome);
    run.said.trim_end().to_owned()
}

#[test]
fn selections_walk_a_page_as_in_k6() {
    for (expression, text) in [
        ("doc.find('title').text()", r#""T""#),
        ("[doc.find('a').attr('href'), doc.find('a').attr('nope', 'd')]", r#"["/rel?q=1#h","d"]"#),
        ("doc.find('a').attr('nope')", "undefined"),
        ("[doc.find('p').html(), doc.find('zzz').html()]", r#"["two <b>bold</b>",""]"#),
        ("doc.find('a').data()", r#"{"num":12,"someJSON":{"a":1},"t":true}"#),
        ("[doc.find('a').data('num'), doc.find('a').data('some-json')]", r#"[12,{"a":1}]"#),
        ("doc.find('li').map((i, e) => i + e.text())", r#"["01","12","23"]"#),
        (
            "(() => { const r = []; doc.find('li').each((i, e) => r.push(i + e.nodeName())); return r; })()",
            r#"["0li","1li","2li"]"#,
        ),
        ("[doc.find('li').filter('.s').text(), doc.find('li').filter((i) => i == 2).text()]", r#"["2","3"]"#),
        ("[doc.find('li').not('.s').text(), doc.find('li').not((i) => i == 0).text()]", r#"["13","23"]"#),
        (
            "[doc.find('li').is('.s'), doc.find('p').has('b').size(), doc.find('p').has('i').size()]",
            "[true,1,0]",
        ),
        ("[doc.find('li.s').index(), doc.find('li.s').index('li')]", "[1,1]"),
        ("[doc.find('li.s').next().text(), doc.find('li.s').prev().text()]", r#"["3","1"]"#),
        ("[doc.find('li.s').siblings().size(), doc.find('li.s').parents().size()]", "[2,3]"),
        ("doc.find('li.s').parentsUntil('html').size()", "2"),
        ("doc.find('li').first().nextUntil('li:last-child').text()", r#""2""#),
        ("[doc.find('b').closest('body').attr('id'), doc.find('p').contents().size()]", r#"["b",2]"#),
        ("doc.find('ul').find('li').end().size()", "1"),
        ("[doc.find('li').slice(-1).text(), doc.find('li').eq(-1).text()]", r#"["3","3"]"#),
        ("[doc.find('li').get().length, doc.find('li').get(1).textContent()]", r#"[3,"2"]"#),
        ("doc.find('li').toArray().map((x) => x.text())", r#"["1","2","3"]"#),
        ("doc.find('form').serialize()", r#""m=a&m=b&n=v&sel=2&t=te%26lt%3Bxt""#),
        ("doc.find('form').serializeObject()", r#"{"n":"v","sel":"2","m":["a","b"],"t":"te&lt;xt"}"#),
        (
            "['input', '[name=c]', '[name=m]', 'button'].map((s) => doc.find(s).val())",
            r#"["v","on",["a","b"],"bv"]"#,
        ),
        (
            "[doc.find('p').add('li').size(), doc.find('li:contains(\"2\")').size(), doc.find('li[').size()]",
            "[4,1,0]",
        ),
    ] {
        assert_eq!(json(expression), text, "{expression}");
    }
}

#[test]
fn elements_have_the_members_of_their_tag() {
    for (expression, text) in [
        ("doc.find('a').get(0).href()", r#""/rel?q=1#h""#),
        (
            "['hash', 'pathname', 'search', 'host', 'protocol', 'text'].map((m) => doc.find('a').get(0)[m]())",
            r##"["#h","/rel","?q=1","",":","one"]"##,
        ),
        (
            "((f) => [f.elements().length, f.method(), f.action(), f.enctype(), f.autocomplete()])(doc.find('form').get(0))",
            r#"[8,"post","/f","application/x-www-form-urlencoded","on"]"#,
        ),
        (
            "((i) => [i.value(), i.type(), i.maxLength(), i.form().nodeName()])(doc.find('input').get(0))",
            r#"["v","text",-1,"form"]"#,
        ),
        (
            "((e) => [e.firstChild().nodeType(), e.parentElement().nodeName(), e.nextElementSibling().nodeName()])(doc.find('a').get(0))",
            r#"[3,"body","p"]"#,
        ),
        (
            "((e) => [e.querySelector('li.s').textContent(), e.getElementsByTagName('li').length, e.classList(), e.ownerDocument().nodeName()])(doc.find('body').get(0))",
            r##"["2",3,["x","y"],"#document"]"##,
        ),
        (
            "((s) => [s.value(), s.selectedIndex(), s.length(), s.type()])(doc.find('select').get(0))",
            r#"["2",1,2,"select-one"]"#,
        ),
    ] {
        assert_eq!(json(expression), text, "{expression}");
    }
}

#[test]
fn elements_without_content_are_closed_as_go_writes_them() {
    let source = "import { parseHTML } from 'k6/html';
        export default function () { console.log(parseHTML('<p>a<br>b<img src=\"c\">&lt;</p>').find('p').html()); }";
    let run = iterate(source, 1, |_| reply(200, &[], ""));
    assert_eq!(run.said.trim_end(), r#"a<br/>b<img src="c"/>&lt;"#);
}

#[test]
fn a_form_is_submitted_and_a_link_followed() {
    let source = "import http from 'k6/http';
        export default function () {
          const page = http.get('http://h.example/d/page');
          page.submitForm({ formSelector: 'form', fields: { n: 'new', extra: 'x y' } });
          page.clickLink({ selector: 'a' });
          console.log(page.html('li.s').text());
        }";
    let mut bodies = Vec::new();
    let run = iterate(source, 1, |request| {
        if let Body::Bytes(bytes) = &request.spec.plan.body {
            bodies.push(String::from_utf8_lossy(bytes).into_owned());
        }
        reply(200, &[], PAGE)
    });
    assert_eq!(run.said.trim_end(), "2");
    assert_eq!(
        run.seen.requests,
        ["GET http://h.example/d/page", "POST http://h.example/f", "GET http://h.example/rel?q=1#h"]
    );
    assert_eq!(bodies, ["extra=x+y&m=a&m=b&n=new&s=go&sel=2&t=te%26lt%3Bxt"]);
}

#[test]
fn a_page_without_a_body_says_so() {
    let source = "import http from 'k6/http';
        export default function () { http.get('http://h.example/', { responseType: 'none' }).html(); }";
    let run = iterate(source, 1, |_| reply(200, &[], PAGE));
    let Outcome::Failed(error) = run.outcome else { panic!("{:?}", run.outcome) };
    assert!(error.message.contains("the body is null"), "{}", error.message);
}

//! Collections, and the requests that Postman sends for them.

use super::super::tests::{all, good};
use super::super::{Format, ReadOptions, open_bytes};
use crate::{Problem, Request};

fn collection(rest: &str) -> Vec<u8> {
    format!(r#"{{"info":{{"schema":"https://schema.getpostman.com/json/collection/v2.1.0/collection.json"}},{rest}}}"#).into_bytes()
}

fn one(request: &str) -> Request {
    let records =
        good(Format::Postman, collection(&format!(r#""item":[{{"name":"r","request":{request}}}]"#)));
    records[0].request.clone()
}

#[test]
fn folders_variables_and_authorization_are_followed() {
    let text = collection(
        r#""variable":[{"key":"base","value":"http://x:8080"}],
          "auth":{"type":"bearer","bearer":[{"key":"token","value":"T"}]},
          "item":[{"name":"f","auth":{"type":"apikey","apikey":[{"key":"key","value":"X-Key"},{"key":"value","value":"K"}]},
              "variable":[{"key":"id","value":"7"}],
              "item":[{"name":"a","request":{"method":"POST","url":{"raw":"{{base}}/a/{{id}}"},
                 "header":[{"key":"X","value":"1"},{"key":"Y","value":"2","disabled":true}],
                 "body":{"mode":"raw","raw":"{}","options":{"raw":{"language":"json"}}}}}]},
            {"name":"b","request":"{{base}}/b"},
            {"name":"c","request":{"url":"{{base}}/c","auth":{"type":"noauth"}}},
            {"name":"bad","request":{"url":"http://"}}]"#,
    );
    let (records, problems) = all(Format::Postman, text);
    assert_eq!((records.len(), problems.len()), (3, 1));
    let fields = |nth: usize| {
        let fields = &records[nth].request.headers;
        fields
            .iter()
            .map(|field| format!("{}: {}", field.name, String::from_utf8_lossy(&field.value)))
            .collect::<Vec<_>>()
    };
    assert_eq!(records[0].request.url(), "http://x:8080/a/7");
    assert_eq!(fields(0), ["X: 1", "X-Key: K", "Content-Type: application/json"]);
    assert_eq!(fields(1), ["Authorization: Bearer T"]);
    assert_eq!(fields(2), [""; 0]);
    assert_eq!(good(Format::Postman, br#"{"collection":{"item":[]}}"#.to_vec()).len(), 0);
}

#[test]
fn urls_are_made_of_what_the_file_has() {
    for (url, expected) in [
        (r#"{"raw":"x/:id/b?c=:id","variable":[{"key":"id","value":"42"}]}"#, "http://x/42/b?c=:id"),
        (r#"{"raw":"https://x/:other","variable":[]}"#, "https://x/:other"),
        (
            r#"{"protocol":"https","host":["a","b"],"port":"81","path":["c",{"type":"string","value":"d"}],"query":[{"key":"q","value":"1"},{"key":"r","value":"2","disabled":true}]}"#,
            "https://a.b:81/c/d?q=1",
        ),
        (r#"{"host":"h","path":"/p","query":[{"key":null,"value":null,"disabled":true}]}"#, "http://h/p"),
    ] {
        assert_eq!(one(&format!(r#"{{"url":{url}}}"#)).url(), expected, "{url}");
    }
}

#[test]
fn authorization_of_each_kind_is_sent() {
    for (auth, url, authorization) in [
        (r#""type":"basic","basic":{"username":"u","password":"p"}"#, "http://x/", "Basic dTpw"),
        (
            r#""type":"apikey","apikey":[{"key":"key","value":"k"},{"key":"value","value":"a b"},{"key":"in","value":"query"}]"#,
            "http://x/?k=a+b",
            "",
        ),
        (r#""type":"oauth2","oauth2":[{"key":"accessToken","value":"T"}]"#, "http://x/", "Bearer T"),
        (
            r#""type":"oauth2","oauth2":[{"key":"accessToken","value":"T"},{"key":"addTokenTo","value":"queryParams"}]"#,
            "http://x/?access_token=T",
            "",
        ),
        (r#""type":"awsv4","awsv4":[]"#, "http://x/", ""),
    ] {
        let request = one(&format!(r#"{{"url":"x","auth":{{{auth}}}}}"#));
        let found = request
            .header("authorization")
            .map_or_else(String::new, |value| String::from_utf8_lossy(value).into_owned());
        assert_eq!((request.url().as_str(), found.as_str()), (url, authorization), "{auth}");
    }
}

#[test]
fn bodies_of_each_mode_are_sent() {
    for (body, content_type, expected) in [
        (
            r#"{"mode":"urlencoded","urlencoded":[{"key":"a b","value":"1&2"},{"key":"c","value":"d","disabled":true}]}"#,
            "application/x-www-form-urlencoded",
            "a+b=1%262",
        ),
        (r#"{"mode":"raw","raw":"<a/>","options":{"raw":{"language":"xml"}}}"#, "application/xml", "<a/>"),
        (
            r#"{"mode":"graphql","graphql":{"query":"{a}","variables":"{\"b\":1}"}}"#,
            "application/json",
            r#"{"query":"{a}","variables":{"b":1}}"#,
        ),
        (
            r#"{"mode":"formdata","formdata":[{"key":"a","value":"1","type":"text"},{"key":"f","type":"file","src":"/none/x.png"}]}"#,
            "multipart/form-data; boundary=squall-0f3a9c51d27e",
            "--squall-0f3a9c51d27e|Content-Disposition: form-data; name=\"a\"||1|--squall-0f3a9c51d27e|Content-Disposition: form-data; name=\"f\"; filename=\"x.png\"|Content-Type: application/octet-stream|||--squall-0f3a9c51d27e--|",
        ),
        (r#"{"mode":"raw","raw":"x","disabled":true}"#, "", ""),
    ] {
        let request = one(&format!(r#"{{"method":"POST","url":"x","body":{body}}}"#));
        let found = request
            .header("content-type")
            .map_or_else(String::new, |value| String::from_utf8_lossy(value).into_owned());
        assert_eq!(found, content_type, "{body}");
        assert_eq!(String::from_utf8_lossy(&request.body).replace("\r\n", "|"), expected, "{body}");
    }
}

const WITH_VARIABLES: &str = r#""event":[{"listen":"prerequest","script":{"exec":["","pm.environment.set('t', 1)"]}}],
    "item":[{"name":"a","event":{"listen":"test","script":{"exec":"pm.test()"}},"request":{"url":"{{base}}/{{$guid}}"}},
      {"name":"b","event":[{"listen":"test","script":{"exec":[""]}}],"request":{"url":{"raw":"http://x/:id","variable":[{"key":"id","value":""}]},"header":[{"key":"A","value":"{{t}}"}]}}]"#;

#[test]
fn variables_without_a_value_are_errors_that_name_all_of_them() {
    let (records, problems) = all(Format::Postman, collection(WITH_VARIABLES));
    let reasons: Vec<_> = problems.iter().map(|problem| problem.reason.as_str()).collect();
    assert_eq!(records.len(), 0);
    assert_eq!(
        reasons,
        [
            "`a`: no value for {{base}} (other requests lack 2 more: {{id}}, {{t}}): give one with --env-file",
            "`b`: no value for {{id}}, {{t}}: give one with --env-file"
        ]
    );
}

#[test]
fn variables_whose_values_lead_back_to_them_are_errors() {
    let text = collection(
        r#""variable":[{"key":"a","value":"http://{{b}}"},{"key":"b","value":"{{a}}"},{"key":"c","value":"x"}],
           "item":[{"name":"r","request":"{{a}}/1"},{"name":"s","request":"http://{{c}}/2"}]"#,
    );
    let (records, problems) = all(Format::Postman, text);
    assert_eq!(records.iter().map(|record| record.request.url()).collect::<Vec<_>>(), ["http://x/2"]);
    let reasons: Vec<_> = problems.iter().map(|problem| problem.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["`r`: the value of a variable contains the variable itself: {{a}} -> {{b}} -> {{a}}"]
    );
}

#[test]
fn environments_give_values_and_scripts_are_noted() {
    let environment = [("base", "https://h"), ("t", "T"), ("id", "5")];
    let variables = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let options = ReadOptions { variables, ..ReadOptions::default() };
    let mut source = open_bytes(Format::Postman, collection(WITH_VARIABLES), &options).unwrap();
    let urls: Result<Vec<_>, Problem> = (0..2).map(|_| Ok(source.next()?.unwrap().request.url())).collect();
    assert_eq!(urls.unwrap(), ["https://h/00000000-0000-4000-8000-000000000001", "http://x/5"]);
    let notes: Vec<_> = source
        .notes()
        .iter()
        .map(|(text, count, _)| (text.split(" are").next().unwrap_or_default().to_owned(), count))
        .collect();
    let expected = [
        ("pre-request scripts", 1),
        ("test scripts", 1),
        ("{{$guid}}: made up by Postman for each request, fixed here", 1),
    ];
    assert_eq!(notes, expected.map(|(text, count)| (text.to_owned(), count)));
}

#[test]
fn files_outside_the_folder_of_the_collection_are_sent_empty() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("in")).unwrap();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    let item = |source: &str| {
        format!(
            r#"{{"name":"r","request":{{"method":"POST","url":"x","body":{{"mode":"file","file":{{"src":"{source}"}}}}}}}}"#
        )
    };
    let absolute = folder.path().join("secret").display().to_string();
    let items = [item("../secret"), item(&absolute)].join(",");
    let path = folder.path().join("in/c.json");
    std::fs::write(&path, collection(&format!(r#""item":[{items}]"#))).unwrap();
    let mut source = crate::read::open(&path, &ReadOptions::default()).unwrap();
    for _ in 0..2 {
        assert_eq!(source.next().unwrap().unwrap().request.body, b"");
    }
    let notes: Vec<_> = source.notes().iter().map(|(text, ..)| text.to_owned()).collect();
    assert!(notes.iter().all(|note| note.contains("sent empty") && note.contains("outside")), "{notes:?}");
    assert_eq!(notes.len(), 2);
}

#[test]
fn saved_responses_stand_for_the_requests_that_they_answered() {
    let text = collection(
        r#""variable":[{"key":"base","value":"http://x"}],
          "item":[{"name":"a","request":"{{base}}/a","response":[
            {"name":"ok","originalRequest":{"method":"GET","url":"{{base}}/a?x=1"},"code":201,"responseTime":12,"body":"{}",
             "header":[{"key":"Content-Type","value":"application/json"},{"key":"Content-Encoding","value":"gzip"}]},
            {"name":"none","originalRequest":{"method":"GET","url":"{{base}}/a?x=2"},"code":404,"header":null,"body":null},
            "nonsense"]},
            {"name":"b","request":"{{base}}/b","response":null}]"#,
    );
    let read = |saved_responses: bool| {
        let options = ReadOptions { saved_responses, ..ReadOptions::default() };
        let mut source = open_bytes(Format::Postman, text.clone(), &options).unwrap();
        let mut found = Vec::new();
        while let Some(record) = source.next().unwrap() {
            let response = record.response.map(|response| {
                let body = String::from_utf8(response.body.unwrap_or_default()).unwrap();
                (response.status, response.headers.len(), body, response.latency_ns)
            });
            found.push((record.request.target, response));
        }
        found
    };
    assert_eq!(read(false), [("/a".to_owned(), None), ("/b".to_owned(), None)]);
    let expected = [
        ("/a?x=1".to_owned(), Some((201, 1, "{}".to_owned(), 12_000_000))),
        ("/a?x=2".to_owned(), Some((404, 0, String::new(), 0))),
    ];
    assert_eq!(read(true), expected);
}

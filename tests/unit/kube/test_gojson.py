from isvc.kube import gojson


def test_angle_brackets_and_ampersands_are_escaped_as_go_does():
    assert gojson.dumps({"if": "a<b && b>c"}) == '{"if":"a\\u003cb \\u0026\\u0026 b\\u003ec"}'


def test_other_unicode_stays_as_it_is_but_line_separators_do_not():
    assert gojson.dumps("é\u2028") == '"é\\u2028"'


def test_maps_are_sorted_by_bytes_and_structs_keep_their_order():
    assert gojson.dumps({"z": gojson.sorted_map({"b": 1, "a": 2, "Z": 3})}) == '{"z":{"Z":3,"a":2,"b":1}}'
